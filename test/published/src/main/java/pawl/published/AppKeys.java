package pawl.published;

import com.wultra.security.powerauth.crypto.lib.enums.EcCurve;
import com.wultra.security.powerauth.crypto.lib.util.KeyConvertor;
import java.nio.ByteBuffer;
import java.security.PublicKey;
import java.util.Base64;

/** What an app of 4.0 is built with. `key` and `secret`: Base64; `masterKey`: the one of P-384. */
record AppKeys(String key, String secret, PublicKey masterKey) {

    private static final int P384 = 2;
    private static final int TWO_BYTES = 0x80;
    private static final int FOUR_BYTES = 0xc0;

    /** Reads the SDK configuration: version, key, secret, and master keys with their number. */
    static AppKeys parse(String configuration) throws Exception {
        ByteBuffer bytes = ByteBuffer.wrap(Base64.getDecoder().decode(configuration));
        Check.equal((byte) 1, bytes.get(), "the version of the SDK configuration");
        String key = text(bytes);
        String secret = text(bytes);
        String masterKey = null;
        for (int left = length(bytes); left > 0; left--) {
            int number = bytes.get();
            String one = text(bytes);
            masterKey = number == P384 ? one : masterKey;
        }
        Check.that(masterKey != null, "the SDK configuration has no master key of P-384");
        return new AppKeys(key, secret, p384(masterKey));
    }

    static PublicKey p384(String base64) throws Exception {
        return new KeyConvertor().convertBytesToPublicKey(EcCurve.P384, Base64.getDecoder().decode(base64));
    }

    private static String text(ByteBuffer bytes) {
        byte[] value = new byte[length(bytes)];
        bytes.get(value);
        return Base64.getEncoder().encodeToString(value);
    }

    /** One byte, two or four: the first two bits say how many. */
    private static int length(ByteBuffer bytes) {
        int first = bytes.get() & 0xff;
        if (first < TWO_BYTES) {
            return first;
        }
        int length = first & 0x3f;
        for (int more = first < FOUR_BYTES ? 1 : 3; more > 0; more--) {
            length = length << 8 | bytes.get() & 0xff;
        }
        return length;
    }
}
