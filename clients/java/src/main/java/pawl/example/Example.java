// The life of one payment from the bank's side: register a user, commit the phone, ask for an approval, wait, check the webhook.
// Environment: PAWL_URL, PAWL_ADMIN (user:password), PAWL_APP (application). A phone has to use the printed code and approve.
package pawl.example;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.time.Instant;
import java.util.Base64;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import pawl.client.ApiClient;
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

public final class Example {
  private static final ApiClient CLIENT = new ApiClient();
  private static final CompletableFuture<String> TOLD = new CompletableFuture<>();
  private static volatile WebhookVerifier verifier;

  public static void main(String[] arguments) throws Exception {
    byte[] credential = System.getenv("PAWL_ADMIN").getBytes(StandardCharsets.UTF_8);
    String authorization = "Basic " + Base64.getEncoder().encodeToString(credential);
    CLIENT.updateBaseUri(System.getenv("PAWL_URL"));
    CLIENT.setRequestInterceptor(request -> request.header("Authorization", authorization));
    RegistrationApi registrations = new RegistrationApi(CLIENT);
    OperationsApi operations = new OperationsApi(CLIENT);
    AdministrationWebhooksApi webhooks = new AdministrationWebhooksApi(CLIENT);

    HttpServer receiver = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    receiver.createContext("/", Example::receive);
    receiver.start();
    CreateWebhookResponse webhook =
        webhooks.createWebhook(
            new CreateWebhookRequest()
                .application(System.getenv("PAWL_APP"))
                .name("java example")
                .kind(CreateWebhookRequest.KindEnum.OPERATION)
                .url("http://127.0.0.1:" + receiver.getAddress().getPort() + "/")
                .addAttributesItem("userId")
                .addAttributesItem("status"));
    verifier = new WebhookVerifier(webhook.getSecret());

    String userId = "java-" + Instant.now().toEpochMilli();
    System.out.println(
        "code " + registrations.createRegistration(new CreateRegistrationRequest().userId(userId)).getActivationQrCodeData());
    while (registrations.readRegistration(userId).getRegistration() != Registration.RegistrationEnum.PENDING_COMMIT) {
      TimeUnit.MILLISECONDS.sleep(200);
    }
    registrations.commitRegistration(new CommitRegistrationRequest().userId(userId));

    Map<String, String> payment = Map.of("amount", "10.00", "currency", "EUR", "iban", "DE89370400440532013000");
    Operation created =
        operations.createOperation(
            new CreateOperationRequest().userId(userId).template("payment").parameters(payment), "java-" + userId);
    System.out.println("operation " + created.getOperationId());

    long end = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
    Operation operation = created;
    while (operation.getStatus() == Operation.StatusEnum.PENDING && System.nanoTime() < end) {
      TimeUnit.MILLISECONDS.sleep(200);
      operation = operations.readOperation(created.getOperationId().toString());
    }
    System.out.println("status " + operation.getStatus());
    System.out.println("webhook " + TOLD.get(30, TimeUnit.SECONDS));

    // What somebody else made is refused.
    long now = Instant.now().getEpochSecond();
    if (verifier.isGenuine("a", String.valueOf(now), "v1,AAAA", new byte[0], now)) {
      throw new IllegalStateException("a forged message was taken");
    }
    webhooks.removeWebhook(webhook.getId());
    receiver.stop(0);
    System.out.println("done");
    System.exit(0);
  }

  private static void receive(HttpExchange exchange) throws IOException {
    try (exchange) {
      byte[] body = exchange.getRequestBody().readAllBytes();
      var headers = exchange.getRequestHeaders();
      boolean isGenuine =
          verifier.isGenuine(
              headers.getFirst("webhook-id"),
              headers.getFirst("webhook-timestamp"),
              headers.getFirst("webhook-signature"),
              body,
              Instant.now().getEpochSecond());
      if (isGenuine) {
        WebhookOperationMessage message = CLIENT.getObjectMapper().readValue(body, WebhookOperationMessage.class);
        if (message.getEvent() != WebhookOperationMessage.EventEnum.CREATED) {
          TOLD.complete(message.getEvent() + " " + message.getOperationId());
        }
      }
      exchange.sendResponseHeaders(isGenuine ? 204 : 400, -1);
    } catch (GeneralSecurityException error) {
      TOLD.completeExceptionally(error);
    }
  }
}
