package pawl.published;

import com.fasterxml.jackson.databind.JsonNode;
import com.wultra.app.enrollmentserver.api.model.enrollment.request.OidcApplicationConfigurationRequest;
import com.wultra.app.enrollmentserver.api.model.enrollment.response.OidcApplicationConfigurationResponse;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Phones that are bound by a login at the bank's OpenID provider, and what they type for a text that is for any phone. */
final class LoginChecks {

    private static final String USER = "published-login";
    private static final String PROVIDER = "web-bank";

    private final Check check;
    private final DeviceChecks.Shop shop;
    private final Bank bank;
    private final String pawl;
    private final Desk desk;

    LoginChecks(Check check, DeviceChecks.Shop shop, Bank bank, String pawl, Desk desk) {
        this.check = check;
        this.shop = shop;
        this.bank = bank;
        this.pawl = pawl;
        this.desk = desk;
    }

    /** `version`: of a phone that comes to those which the user has. */
    void run(String version) {
        Phone[] bound = new Phone[1];
        check.run(version + " login: binds a phone, which is ACTIVE", () -> {
            Phone phone = shop.sell(version);
            OidcApplicationConfigurationRequest question = new OidcApplicationConfigurationRequest();
            question.setProviderId(PROVIDER);
            JsonNode told = phone.encrypted(pawl + "/api/config/oidc", Http.bytes(question), true).exchange();
            Check.equal("OK", told.path("status").asText(), "the status that the phone is told");
            OidcApplicationConfigurationResponse provider =
                    Http.read(told.path("responseObject"), OidcApplicationConfigurationResponse.class);
            Check.equal(PROVIDER, provider.getProviderId(), "the provider that the phone is told of");
            // SDKs put it into the address as it is.
            Check.that(List.of(provider.getScopes().split(" ")).contains("openid"), "the scopes are " + provider.getScopes());
            Check.that(provider.isPkceEnabled(), "PKCE is off");
            for (String member : new String[] {provider.getClientId(), provider.getAuthorizeUri(), provider.getRedirectUri()}) {
                Check.that(member != null && !member.isEmpty(), "the phone is told of " + provider);
            }
            Check.equal(200, phone.activateBy(identity(desk.logIn(USER))), "the status");
            Check.equal("ACTIVE", bank.stateOf(phone.activationId()), "the state");
            DeviceChecks.validation(phone, pawl, Phone.PIN).exchange();
            Check.equal(0, phone.failedAttempts(), "failed attempts");
            bound[0] = phone;
        });
        check.run(version + " login: one that was used, of another verifier or of another nonce binds nothing", () -> {
            int before = bank.countPhones(USER);
            Map<String, String> login = identity(desk.logIn(USER));
            Map<String, String> other = identity(desk.logIn(USER));
            for (String part : new String[] {"codeVerifier", "nonce"}) {
                Map<String, String> mixed = identity(desk.logIn(USER));
                mixed.put(part, other.get(part));
                Check.equal(400, shop.sell(version).activateBy(mixed), "the status with another " + part);
            }
            Check.equal(before, bank.countPhones(USER), "phones of the user");
            Check.equal(200, shop.sell(version).activateBy(login), "the status");
            Check.equal(400, shop.sell(version).activateBy(login), "the status of the second time");
            Check.equal(before + 1, bank.countPhones(USER), "phones of the user");
        });
        if (bound[0] == null) {
            return;
        }
        check.run(version + " offline: a text that is for any phone, which the master key signs, and what the user types for it", () -> {
            Phone phone = bound[0];
            JsonNode challenge = bank.challengeForAny("order-9", "A1*A10EUR");
            String code = phone.offlineCodeForAny(challenge.path("qrCodeData").asText());
            JsonNode verdict = bank.verifyOfflineOf(phone.activationId(), challenge, code);
            Check.that(verdict.path("isValid").asBoolean(), "the verdict is " + verdict);
            Check.equal(USER, verdict.path("userId").asText(), "the user");
            JsonNode again = bank.verifyOfflineOf(phone.activationId(), challenge, code);
            Check.equal("CHALLENGE", again.path("reason").asText(), "the same again");
            JsonNode other = bank.challengeForAny("order-10", "A1*A10EUR");
            JsonNode refused = bank.verifyOfflineOf(phone.activationId(), other, code);
            Check.equal("CODE_WRONG", refused.path("reason").asText(), "for another challenge");
            DeviceChecks.validation(phone, pawl, Phone.PIN).exchange();
        });
    }

    private static Map<String, String> identity(JsonNode login) {
        Map<String, String> identity = new HashMap<>(Map.of("method", "oidc", "providerId", PROVIDER));
        for (String part : new String[] {"code", "nonce", "codeVerifier"}) {
            identity.put(part, login.path(part).asText());
        }
        return identity;
    }
}
