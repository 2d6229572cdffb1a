package pawl.published;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;

/** Sends what the libraries made, so that it can be sent with every method, twice, and with other names of headers. */
final class Http {

    static final ObjectMapper JSON = new ObjectMapper();

    private static final HttpClient CLIENT = HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .connectTimeout(Duration.ofSeconds(10))
            .build();

    private Http() {
    }

    /** Reads the plaintext out of an encrypted answer. */
    interface Opener {
        byte[] open(byte[] answer) throws Exception;
    }

    /** A request that is ready to be sent; `body` is null where there is none, `opener` where the answer is plain. */
    record Request(String method, String url, Map<String, String> headers, byte[] body, Opener opener) {

        Reply send() throws IOException, InterruptedException {
            HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url)).timeout(Duration.ofSeconds(60));
            if (body != null) {
                request.header("Content-Type", "application/json");
            }
            headers.forEach(request::setHeader);
            request.method(method, body == null ? BodyPublishers.noBody() : BodyPublishers.ofByteArray(body));
            HttpResponse<byte[]> answer = CLIENT.send(request.build(), BodyHandlers.ofByteArray());
            return new Reply(answer.statusCode(), answer.body());
        }

        /** Sends the request and gives the answer, decrypted where it is encrypted. */
        JsonNode exchange() throws Exception {
            Reply reply = send();
            reply.expect(200);
            return opener == null ? reply.json() : JSON.readTree(opener.open(reply.body()));
        }

        /** The same with the headers of the other dialect, X-Svc-* for X-PowerAuth-*. */
        Request inOtherDialect() {
            Map<String, String> renamed = new TreeMap<>();
            headers.forEach((name, value) -> renamed.put(name.replaceFirst("(?i)^X-PowerAuth-", "X-Svc-"), value));
            Check.that(!renamed.equals(headers), "no header to rename: " + headers.keySet());
            return new Request(method, url, renamed, body, opener);
        }

        Request withUrl(String other) {
            Check.that(!other.equals(url), "the URL is the same");
            return new Request(method, other, headers, body, opener);
        }

        Request withBody(byte[] other) {
            return new Request(method, url, headers, other, opener);
        }

        Request withMethod(String other) {
            return new Request(other, url, headers, body, opener);
        }

        Request withHeader(String name, String value) {
            Map<String, String> more = new TreeMap<>(headers);
            more.put(name, value);
            return new Request(method, url, more, body, opener);
        }
    }

    record Reply(int status, byte[] body) {

        JsonNode json() throws IOException {
            return JSON.readTree(body);
        }

        Reply expect(int expected) {
            Check.that(status == expected, "HTTP " + status + " in place of " + expected + ": " + text());
            return this;
        }

        String text() {
            return new String(body, StandardCharsets.UTF_8);
        }
    }

    /** For threads of a check, which may not throw. */
    static int statusOf(Request request) {
        try {
            return request.send().status();
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Reads an answer as a published class does that knows all of its members; fails for a member that it does not have, or of another type. */
    static <T> T read(JsonNode object, Class<T> model) {
        try {
            return JSON.treeToValue(object, model);
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException(e);
        }
    }

    static byte[] bytes(Object value) {
        try {
            return JSON.writeValueAsBytes(value);
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException(e);
        }
    }
}
