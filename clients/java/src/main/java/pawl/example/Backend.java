// A web back end of a bank: customers bind a phone with a QR code and log in with it, and the page follows both (examples/backend/page.html).
// Environment: PAWL_URL, PAWL_ADMIN (user:password), PAWL_APP (application), BANK_PORT.
package pawl.example;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.zxing.BarcodeFormat;
import com.google.zxing.WriterException;
import com.google.zxing.common.BitMatrix;
import com.google.zxing.qrcode.QRCodeWriter;
import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import pawl.client.ApiClient;
import pawl.client.ApiException;
import pawl.client.api.AdministrationWebhooksApi;
import pawl.client.api.OperationsApi;
import pawl.client.api.RegistrationApi;
import pawl.client.model.CommitRegistrationRequest;
import pawl.client.model.CreateOperationRequest;
import pawl.client.model.CreateRegistrationRequest;
import pawl.client.model.CreateWebhookRequest;
import pawl.client.model.CreateWebhookResponse;
import pawl.client.model.Operation;
import pawl.client.model.Registration;
import pawl.client.model.WebhookOperationMessage;

public final class Backend {
  private static final ApiClient CLIENT = new ApiClient();
  private static final ObjectMapper JSON = CLIENT.getObjectMapper();
  private static final RegistrationApi REGISTRATIONS;
  private static final OperationsApi OPERATIONS;
  private static final AdministrationWebhooksApi WEBHOOKS;
  private static volatile WebhookVerifier verifier;

  /** What webhooks told of the ends of operations, by their ids. A bank of more than one process has a table. */
  private static final Map<String, String> TOLD = new ConcurrentHashMap<>();

  static {
    // A bank of its own has a credential with the role integration here; this one makes a webhook besides.
    byte[] credential = setting("PAWL_ADMIN", "").getBytes(StandardCharsets.UTF_8);
    String authorization = "Basic " + Base64.getEncoder().encodeToString(credential);
    CLIENT.updateBaseUri(setting("PAWL_URL", "http://127.0.0.1:8080"));
    CLIENT.setConnectTimeout(Duration.ofSeconds(5)).setReadTimeout(Duration.ofSeconds(30)); // it has none by itself
    CLIENT.setRequestInterceptor(request -> request.header("Authorization", authorization));
    REGISTRATIONS = new RegistrationApi(CLIENT);
    OPERATIONS = new OperationsApi(CLIENT);
    WEBHOOKS = new AdministrationWebhooksApi(CLIENT);
  }

  /** What is answered as JSON; null where there is no such endpoint. */
  private static Map<String, Object> answer(HttpExchange exchange, byte[] body) throws Exception {
    String query = exchange.getRequestURI().getRawQuery();
    return switch (exchange.getRequestMethod() + " " + exchange.getRequestURI().getPath()) {
      case "POST /register" -> {
        String text = REGISTRATIONS.createRegistration(new CreateRegistrationRequest().userId(userOf(body))).getActivationQrCodeData();
        yield Map.of("qrCode", draw(text), "text", text);
      }
      case "GET /registration" -> {
        Registration found = REGISTRATIONS.readRegistration(parameter(query, "userId"));
        Map<String, Object> shown = new HashMap<>(Map.of("registration", found.getRegistration()));
        if (found.getActivationFingerprint() != null) shown.put("activationFingerprint", found.getActivationFingerprint());
        yield shown;
      }
      // The customer says that phone and page show the same number.
      case "POST /commit" -> {
        REGISTRATIONS.commitRegistration(new CommitRegistrationRequest().userId(userOf(body)));
        yield Map.of();
      }
      case "POST /login" -> {
        CreateOperationRequest login = new CreateOperationRequest().userId(userOf(body)).template("login");
        yield Map.of("operationId", ask(login).getOperationId());
      }
      // Only APPROVED means yes. A webhook may be late, so pawl is asked as long as none told the end.
      case "GET /login" -> {
        String operationId = parameter(query, "operationId");
        String known = TOLD.get(operationId);
        yield Map.of("status", known != null ? known : OPERATIONS.readOperation(operationId).getStatus());
      }
      // A message may come twice: what it says is stored, and nothing is done.
      case "POST /webhook" -> {
        if (!isGenuine(exchange.getRequestHeaders(), body)) throw new IllegalArgumentException("no message of pawl");
        WebhookOperationMessage message = JSON.readValue(body, WebhookOperationMessage.class);
        if (message.getStatus() != null && message.getStatus() != WebhookOperationMessage.StatusEnum.PENDING) {
          TOLD.put(message.getOperationId().toString(), message.getStatus().toString());
          System.out.println("webhook " + message.getEvent() + " " + message.getOperationId());
        }
        yield Map.of();
      }
      default -> null;
    };
  }

  /** An answer may be lost. Under the same key the second call gets it again, and the customer is asked once. */
  private static Operation ask(CreateOperationRequest login) throws ApiException {
    String key = UUID.randomUUID().toString();
    try {
      return OPERATIONS.createOperation(login, key);
    } catch (ApiException error) {
      if (error.getCode() != 0) throw error; // pawl has answered
      return OPERATIONS.createOperation(login, key);
    }
  }

  private static boolean isGenuine(Headers headers, byte[] body) throws Exception {
    String[] values = new String[3];
    for (int i = 0; i < 3; i++) values[i] = headers.getFirst(new String[] {"webhook-id", "webhook-timestamp", "webhook-signature"}[i]);
    return verifier.isGenuine(values[0], values[1], values[2], body, Instant.now().getEpochSecond());
  }

  /** Whose browser it is. A real bank takes it from its session, and never from the request. */
  private static String userOf(byte[] body) throws IOException {
    return JSON.readTree(body).path("userId").asText();
  }

  /** An SVG of the QR code of a text. */
  private static String draw(String text) throws WriterException {
    BitMatrix code = new QRCodeWriter().encode(text, BarcodeFormat.QR_CODE, 0, 0);
    StringBuilder path = new StringBuilder();
    for (int y = 0; y < code.getHeight(); y++)
      for (int x = 0; x < code.getWidth(); x++) if (code.get(x, y)) path.append("M").append(x).append(' ').append(y).append("h1v1h-1z");
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\"><path d=\"%s\"/></svg>"
        .formatted(code.getWidth(), code.getHeight(), path);
  }

  public static void main(String[] arguments) throws Exception {
    byte[] page = Files.readAllBytes(Path.of("../../examples/backend/page.html"));
    int port = Integer.parseInt(setting("BANK_PORT", "8091"));
    HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
    server.createContext("/", exchange -> serve(exchange, page));
    server.setExecutor(Executors.newFixedThreadPool(8));
    server.start();
    String address = "http://127.0.0.1:" + server.getAddress().getPort();
    CreateWebhookResponse webhook =
        WEBHOOKS.createWebhook(
            new CreateWebhookRequest()
                .application(setting("PAWL_APP", "my-app"))
                .name("backend")
                .kind(CreateWebhookRequest.KindEnum.OPERATION)
                .url(address + "/webhook")
                .addAttributesItem("userId")
                .addAttributesItem("status"));
    verifier = new WebhookVerifier(webhook.getSecret());
    System.out.println("The bank is at " + address);
    Runtime.getRuntime().addShutdownHook(new Thread(() -> remove(webhook)));
  }

  private static void remove(CreateWebhookResponse webhook) {
    try {
      WEBHOOKS.removeWebhook(webhook.getId());
    } catch (ApiException error) {
      error.printStackTrace();
    }
  }

  private static void serve(HttpExchange exchange, byte[] page) throws IOException {
    try (exchange) {
      byte[] body = exchange.getRequestBody().readAllBytes();
      if (exchange.getRequestMethod().equals("GET") && exchange.getRequestURI().getPath().equals("/")) {
        send(exchange, 200, "text/html", page);
        return;
      }
      Map<String, Object> result;
      try {
        result = answer(exchange, body);
      } catch (ApiException error) {
        refuse(exchange, error.getCode() == 400 ? 400 : 500, messageOf(error));
        return;
      } catch (IllegalArgumentException | IOException error) {
        refuse(exchange, 400, String.valueOf(error.getMessage()));
        return;
      } catch (Exception error) {
        error.printStackTrace();
        refuse(exchange, 500, "the bank has a defect");
        return;
      }
      send(exchange, result == null ? 404 : 200, "application/json", JSON.writeValueAsBytes(result == null ? Map.of() : result));
    }
  }

  /** The text of pawl that says what is wrong. Without one, pawl is away, and a balancer may have answered in its place. */
  private static String messageOf(ApiException error) {
    try {
      return JSON.readTree(error.getResponseBody() == null ? "{}" : error.getResponseBody()).at("/responseObject/message").asText();
    } catch (IOException notJson) {
      return "";
    }
  }

  private static void refuse(HttpExchange exchange, int status, String why) throws IOException {
    send(exchange, status, "application/json", JSON.writeValueAsBytes(Map.of("error", why)));
  }

  private static void send(HttpExchange exchange, int status, String type, byte[] body) throws IOException {
    exchange.getResponseHeaders().set("Content-Type", type);
    exchange.sendResponseHeaders(status, body.length);
    exchange.getResponseBody().write(body);
  }

  /** A parameter of a query; empty without one. */
  private static String parameter(String query, String name) {
    for (String part : (query == null ? "" : query).split("&")) {
      if (part.startsWith(name + "=")) return URLDecoder.decode(part.substring(name.length() + 1), StandardCharsets.UTF_8);
    }
    return "";
  }

  private static String setting(String name, String otherwise) {
    return System.getenv().getOrDefault(name, otherwise);
  }
}
