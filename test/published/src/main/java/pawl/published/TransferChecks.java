package pawl.published;

import com.fasterxml.jackson.databind.JsonNode;
import com.wultra.app.enrollmentserver.api.model.enrollment.request.ActivationCodeRequest;
import com.wultra.app.enrollmentserver.api.model.enrollment.response.ActivationCodeResponse;
import java.util.Map;
import pawl.published.Http.Request;

/** A phone moves from one app of the bank to another: a generic signed and encrypted request, then an activation with an OTP. */
final class TransferChecks {

    private static final String OTP = "b4c1f0e29d7a5836b4c1f0e29d7a5836";
    private static final String PATH = "/api/activation/code";

    private final Check check;
    private final String name;
    private final Checks.Shop shop;
    private final Checks.Shop otherShop;
    private final Bank bank;
    private final String pawl;
    private final String target;

    /** `otherShop`: of the application `target`, to which the bank lets phones move. */
    TransferChecks(Check check, String name, Checks.Shop shop, Checks.Shop otherShop, Bank bank, String pawl, String target) {
        this.check = check;
        this.name = name;
        this.shop = shop;
        this.otherShop = otherShop;
        this.bank = bank;
        this.pawl = pawl;
        this.target = target;
    }

    void run() {
        check.run(name + " transfer: moves to another app", () -> {
            String userId = "published-" + name + "-moves";
            Phone phone = shop.sell();
            phone.activate(bank.register(userId));
            bank.commit(userId);
            ActivationCodeRequest question = new ActivationCodeRequest();
            question.setApplicationId(target);
            question.setOtp(OTP);
            Request request = phone.signedEncrypted(pawl + PATH, PATH, Http.bytes(Map.of("requestObject", question)), Phone.PIN);
            JsonNode told = request.exchange();
            Check.equal("OK", told.path("status").asText(), "the status that the phone is told");
            ActivationCodeResponse answer = Http.read(told.path("responseObject"), ActivationCodeResponse.class);
            Check.that(answer.getActivationSignature() != null, "the code has no signature");
            Phone other = otherShop.sell();
            other.activate(answer.getActivationCode(), OTP);
            Check.equal(answer.getActivationId(), other.activationId(), "the activation that the code is of");
            other.signed("POST", pawl + validation(), "/pa/" + validation().substring(7), new byte[0], Phone.Factors.POSSESSION_KNOWLEDGE,
                    Phone.PIN).exchange();
            Check.that(bank.state(userId).equals("NONE"), "the phone that moved is still bound");
        });
    }

    private String validation() {
        return name.startsWith(Phone4.VERSION) ? "/pa/v4/auth/validate" : "/pa/v3/signature/validate";
    }
}
