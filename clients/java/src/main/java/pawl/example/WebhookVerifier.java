// Checks the webhooks of pawl: HMAC-SHA-256 over id, timestamp and body, as Standard Webhooks has it.
package pawl.example;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Base64;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** One receiver with the secret that was shown when its webhook was created. */
public final class WebhookVerifier {
  private static final long TOLERANCE_SECONDS = 300;

  private final SecretKeySpec key;

  /** @param secret as it was shown, with {@code whsec_} */
  public WebhookVerifier(String secret) {
    this.key = new SecretKeySpec(Base64.getDecoder().decode(secret.replaceFirst("^whsec_", "")), "HmacSHA256");
  }

  /**
   * Whether a message is genuine and new. The same id may come twice: remember the ids.
   *
   * @param body the bytes as they came, before anything parses them
   */
  public boolean isGenuine(String id, String timestamp, String signatures, byte[] body, long nowSeconds)
      throws GeneralSecurityException {
    if (id == null || timestamp == null || signatures == null || !timestamp.matches("\\d{1,12}")) return false;
    if (Math.abs(nowSeconds - Long.parseLong(timestamp)) > TOLERANCE_SECONDS) return false;
    ByteArrayOutputStream signed = new ByteArrayOutputStream();
    signed.writeBytes((id + "." + timestamp + ".").getBytes(StandardCharsets.UTF_8));
    signed.writeBytes(body);
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(key);
    String expected = "v1," + Base64.getEncoder().encodeToString(mac.doFinal(signed.toByteArray()));
    byte[] right = expected.getBytes(StandardCharsets.US_ASCII);
    boolean isRight = false;
    for (String signature : signatures.split(" ")) {
      isRight |= MessageDigest.isEqual(right, signature.getBytes(StandardCharsets.UTF_8));
    }
    return isRight;
  }
}
