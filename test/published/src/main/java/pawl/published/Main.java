package pawl.published;

import com.fasterxml.jackson.databind.JsonNode;
import com.wultra.security.powerauth.crypto.lib.v4.model.context.SharedSecretAlgorithm;
import io.getlime.security.powerauth.lib.cmd.consts.PowerAuthVersion;
import java.security.Security;
import java.util.List;
import java.util.stream.Stream;
import org.bouncycastle.jce.provider.BouncyCastleProvider;

/**
 * Runs all checks. The environment says where: PAWL_URL, BANK_API_URL, PAWL_ADMIN, PAWL_APP, OTHER_APP, BANK_URL, OTHER_BANK_URL,
 * EXPRESS_BANK_URL, SPRING_URL, CLIENTS_URL; for the group `devices` DEVICES_URL, DEVICES_ADMIN, DEVICES_APP and DESK_URL, and nothing else.
 */
public final class Main {

    private static final String DEVICES = "devices";
    private static final List<String> VERSIONS =
            List.of("3.0", "3.1", "3.2", "3.3", "4.0 EC_P384", "4.0 EC_P384_ML_L3", "4.0 EC_P384_ML_L5");
    /** One of each generation: what differs between the versions is pawl's, not that of the guard or of a provider. */
    private static final List<String> OF_EACH = List.of("3.3", "4.0 EC_P384");

    private Main() {
    }

    /** `args`: versions, those of 4.0 with an algorithm, and `devices`; all of them without any. Exit code 1 when a check failed. */
    public static void main(String[] args) throws Exception {
        Security.addProvider(new BouncyCastleProvider());
        Check check = new Check();
        List<String> versions = args.length > 0 ? Stream.of(args).filter(name -> !name.equals(DEVICES)).toList() : VERSIONS;
        if (!versions.isEmpty()) {
            runVersions(check, versions);
        }
        if (args.length == 0 || List.of(args).contains(DEVICES)) {
            runDevices(check);
        }
        // Threads of the library's HTTP layer would keep the process.
        System.exit(check.end() ? 0 : 1);
    }

    /** Of an application whose users may have several phones. */
    private static void runDevices(Check check) throws Exception {
        String pawl = setting("DEVICES_URL");
        Bank bank = new Bank(pawl, setting("DEVICES_ADMIN"));
        JsonNode application = bank.application(setting("DEVICES_APP"));
        Desk desk = new Desk(setting("DESK_URL"));
        DeviceChecks.Shop shop = version -> shopOf(version, pawl, application).sell();
        new DeviceChecks(check, shop, bank, pawl, desk).run();
        for (String version : OF_EACH) {
            new LoginChecks(check, shop, bank, pawl, desk).run(version);
        }
    }

    private static void runVersions(Check check, List<String> versions) throws Exception {
        String pawl = setting("PAWL_URL");
        Bank bank = new Bank(setting("BANK_API_URL"), setting("PAWL_ADMIN"));
        JsonNode application = bank.application(setting("PAWL_APP"));
        String otherApp = setting("OTHER_APP");
        bank.allowMove(setting("PAWL_APP"), otherApp);
        JsonNode otherApplication = bank.application(otherApp);
        for (String version : versions) {
            Checks.Shop shop = shopOf(version, pawl, application);
            new Checks(check, version, shop, bank, setting("BANK_URL"), setting("OTHER_BANK_URL")).run();
            new TransferChecks(check, version, shop, shopOf(version, pawl, otherApplication), bank, pawl, otherApp).run();
            ReferenceChecks reference =
                    new ReferenceChecks(check, version, shop, setting("PAWL_APP"), setting("SPRING_URL"), setting("CLIENTS_URL"));
            if (!version.startsWith(Phone4.VERSION)) {
                LibraryChecks.Shop of3 = () -> (Phone3) shop.sell();
                new LibraryChecks(check, version, of3, bank, setting("BANK_URL")).run();
                reference.runSpring();
                reference.runClient("v3");
            }
            reference.runClient("v4");
            if (OF_EACH.contains(version)) {
                String name = version + " on Express";
                new Checks(check, name, shop, bank, setting("EXPRESS_BANK_URL"), setting("OTHER_BANK_URL")).run();
            }
        }
    }

    private static Checks.Shop shopOf(String version, String pawl, JsonNode application) {
        if (!version.startsWith(Phone4.VERSION)) {
            PowerAuthVersion known = PowerAuthVersion.fromValue(version);
            return () -> new Phone3(pawl, application, known);
        }
        SharedSecretAlgorithm algorithm = SharedSecretAlgorithm.valueOf(version.substring(Phone4.VERSION.length() + 1));
        return () -> new Phone4(pawl, application, algorithm);
    }

    private static String setting(String name) {
        String value = System.getenv(name);
        if (value == null) {
            throw new IllegalArgumentException(name + " is not set");
        }
        return value;
    }
}
