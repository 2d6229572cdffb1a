package pawl.published;

import com.wultra.security.powerauth.crypto.lib.v4.model.context.SharedSecretAlgorithm;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.Map;
import java.util.TreeMap;

/** What an app of 4.0 is built with. `key`, `secret` and master keys, which have numbers: Base64. */
record AppKeys(String key, String secret, Map<Integer, String> masterKeys) {

    static final int P256 = 1;
    private static final int P384 = 2;
    private static final int ML_DSA_65 = 3;
    private static final int ML_DSA_87 = 4;
    private static final int TWO_BYTES = 0x80;
    private static final int FOUR_BYTES = 0xc0;

    /** Reads the SDK configuration: version, key, secret, and master keys with their number. */
    static AppKeys parse(String configuration) throws Exception {
        ByteBuffer bytes = ByteBuffer.wrap(Base64.getDecoder().decode(configuration));
        Check.equal((byte) 1, bytes.get(), "the version of the SDK configuration");
        String key = text(bytes);
        String secret = text(bytes);
        Map<Integer, String> masterKeys = new TreeMap<>();
        for (int left = length(bytes); left > 0; left--) {
            int number = bytes.get();
            masterKeys.put(number, text(bytes));
        }
        return new AppKeys(key, secret, masterKeys);
    }

    /** By which pawl signs for phones of this algorithm that are not bound. */
    SigningKeys masterKeys(SharedSecretAlgorithm algorithm) {
        String mldsa = switch (algorithm) {
            case EC_P384_ML_L3 -> masterKeys.get(ML_DSA_65);
            case EC_P384_ML_L5 -> masterKeys.get(ML_DSA_87);
            default -> null;
        };
        return new SigningKeys(algorithm, masterKeys.get(P384), mldsa);
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
