package pawl.published;

import com.fasterxml.jackson.databind.JsonNode;
import io.getlime.security.powerauth.lib.cmd.consts.PowerAuthVersion;
import java.security.Security;
import java.util.List;
import org.bouncycastle.jce.provider.BouncyCastleProvider;

/** Runs all checks. The environment says where: PAWL_URL, BANK_API_URL, PAWL_ADMIN, PAWL_APP, BANK_URL, OTHER_BANK_URL. */
public final class Main {

    private static final List<String> VERSIONS = List.of("3.0", "3.1", "3.2", "3.3", Phone4.VERSION);

    private Main() {
    }

    /** `args`: versions; all of them without any. Exit code 1 when a check failed. */
    public static void main(String[] args) throws Exception {
        Security.addProvider(new BouncyCastleProvider());
        String pawl = setting("PAWL_URL");
        Bank bank = new Bank(setting("BANK_API_URL"), setting("PAWL_ADMIN"));
        JsonNode application = bank.application(setting("PAWL_APP"));
        Check check = new Check();
        for (String version : args.length > 0 ? List.of(args) : VERSIONS) {
            if (version.equals(Phone4.VERSION)) {
                new Checks(check, version, () -> new Phone4(pawl, application), bank, setting("BANK_URL"),
                        setting("OTHER_BANK_URL")).run();
                continue;
            }
            PowerAuthVersion known = PowerAuthVersion.fromValue(version);
            LibraryChecks.Shop shop = () -> new Phone3(pawl, application, known);
            new Checks(check, version, shop::sell, bank, setting("BANK_URL"), setting("OTHER_BANK_URL")).run();
            new LibraryChecks(check, version, shop, bank, setting("BANK_URL")).run();
        }
        // Threads of the library's HTTP layer would keep the process.
        System.exit(check.end() ? 0 : 1);
    }

    private static String setting(String name) {
        String value = System.getenv(name);
        if (value == null) {
            throw new IllegalArgumentException(name + " is not set");
        }
        return value;
    }
}
