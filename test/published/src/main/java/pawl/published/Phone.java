package pawl.published;

/** One phone, played by a published client library. Each request that it makes moves its counter; none is sent here. */
interface Phone {

    String PIN = "1234";
    String WRONG_PIN = "9999";

    enum Factors { POSSESSION, POSSESSION_KNOWLEDGE, POSSESSION_BIOMETRY }

    /** Exchanges keys with pawl for an activation code. */
    default void activate(String code) throws Exception {
        activate(code, null);
    }

    /** The same with a one-time password; null where none is demanded. */
    void activate(String code, String otp) throws Exception;

    /** `url` has the query, `body` is null where there is none. */
    Http.Request signed(String method, String url, String resourceId, byte[] body, Factors factors, String pin)
            throws Exception;

    /** A GET with a token that is made first, by possession. */
    Http.Request withToken(String url) throws Exception;

    /** A POST in activation scope, or in application scope, which needs no activation. */
    Http.Request encrypted(String url, byte[] plaintext, boolean isApplicationScope) throws Exception;

    /** A POST whose code covers the plaintext. */
    Http.Request signedEncrypted(String url, String resourceId, byte[] plaintext, String pin) throws Exception;

    /**
     * What the user types for the text of a QR code, whose proof is checked first. The text is of free data in the lines of an operation, which is
     * what the library of 3.x reads: the code covers the first line and the fourth.
     */
    String offlineCode(String text) throws Exception;

    /** Failed attempts, as pawl tells the phone. */
    int failedAttempts() throws Exception;

    /** False for 3.0 and 3.1, whose envelopes may come a second time. */
    boolean hasReplayProtection();

    /** True from 4.0 on: the code of a GET with a body covers the body and not the query. */
    boolean coversBodyOfGet();
}
