package pawl.published;

import java.util.Map;

/** One phone, played by a published client library. Each request that it makes moves its counter; none is sent here. */
interface Phone {

    String PIN = "1234";
    String WRONG_PIN = "9999";

    enum Factors { POSSESSION, POSSESSION_KNOWLEDGE, POSSESSION_BIOMETRY }

    /** What a phone shows in place of a code. */
    interface Token {
        /** With a header of its own; `body` is null where there is none. */
        Http.Request request(String method, String url, byte[] body) throws Exception;
    }

    /** Exchanges keys with pawl for an activation code. */
    default void activate(String code) throws Exception {
        activate(code, null);
    }

    /** The same with a one-time password; null where none is demanded. */
    void activate(String code, String otp) throws Exception;

    /** The same for what a provider of the bank knows the user by. Gives the status of the answer: after 200 the phone is bound. */
    int activateBy(Map<String, String> identity) throws Exception;

    /** Of its activation. */
    String activationId();

    /** `url` has the query, `body` is null where there is none. */
    Http.Request signed(String method, String url, String resourceId, byte[] body, Factors factors, String pin)
            throws Exception;

    /** A token that is made by possession. */
    Token createToken() throws Exception;

    /** A GET with a token that is made first. */
    default Http.Request withToken(String url) throws Exception {
        return createToken().request("GET", url, null);
    }

    /** A POST in activation scope, or in application scope, which needs no activation. */
    Http.Request encrypted(String url, byte[] plaintext, boolean isApplicationScope) throws Exception;

    /** A POST whose code covers the plaintext. */
    Http.Request signedEncrypted(String url, String resourceId, byte[] plaintext, String pin) throws Exception;

    /**
     * What the user types for the text of a QR code, whose proof is checked first. The text is of free data in the lines of an operation, which is
     * what the library of 3.x reads: the code covers the first line and the fourth.
     */
    String offlineCode(String text) throws Exception;

    /** The same for a text that is for any phone of the application, which the master key signs. */
    String offlineCodeForAny(String text) throws Exception;

    /** Failed attempts, as pawl tells the phone. */
    int failedAttempts() throws Exception;

    /** False for 3.0 and 3.1, whose envelopes may come a second time. */
    boolean hasReplayProtection();

    /** True from 4.0 on: the code of a GET with a body covers the body and not the query. */
    boolean coversBodyOfGet();
}
