package pawl.published.client;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Serves POST /CLIENT/METHOD for each client of CLIENTS, a comma list of class names, against REFERENCE_URL with REFERENCE_TOKEN and REFERENCE_SECRET, until its input
 * ends. Prints where it listens.
 */
public final class ClientServer {

    private static final ObjectMapper JSON = new ObjectMapper();

    private ClientServer() {
    }

    public static void main(String[] args) throws Exception {
        Map<String, ClientCalls> clients = new LinkedHashMap<>();
        for (String name : System.getenv("CLIENTS").split(",")) {
            Object client = ClientCalls.open(name, System.getenv("REFERENCE_URL"), System.getenv("REFERENCE_TOKEN"),
                    System.getenv("REFERENCE_SECRET"));
            clients.put(name.replaceAll("\\..*", ""), new ClientCalls(client));
        }
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> serve(exchange, clients));
        server.start();
        System.out.println("bank listens on http://127.0.0.1:" + server.getAddress().getPort());
        while (System.in.read() >= 0) {
            // Whoever started it closes its input.
        }
        System.exit(0);
    }

    private static void serve(HttpExchange exchange, Map<String, ClientCalls> clients) throws IOException {
        String[] path = exchange.getRequestURI().getPath().split("/");
        try (exchange) {
            ClientCalls.Answer answer = clients.get(path[1]).call(path[2], JSON.readTree(exchange.getRequestBody()));
            byte[] body = (byte[]) answer.body();
            exchange.sendResponseHeaders(answer.status(), body.length);
            exchange.getResponseBody().write(body);
        } catch (Exception e) {
            System.err.println("client: " + e);
            exchange.sendResponseHeaders(500, -1);
        }
    }
}
