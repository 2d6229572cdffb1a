package pawl.published;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import pawl.published.Http.Reply;
import pawl.published.Http.Request;

/** Three phones of one user, of three versions: what happens to one changes nothing of the others, and one of them decides an operation. */
final class DeviceChecks {

    private static final String USER = "published-devices";
    private static final String MOBILE_TOKEN = "/api/auth/token/app/operation";
    private static final int OPERATIONS = 20;
    private static final int ATTEMPTS = 5;
    private static final int UPGRADING = 1;

    /** An ACTIVE phone of the user, with a token and a place where its pushes go. */
    private record Device(String version, Phone phone, Phone.Token token) {

        String id() {
            return phone.activationId();
        }
    }

    /** Makes a phone of a version that has no activation yet. */
    interface Shop {
        Phone sell(String version) throws Exception;
    }

    private final Check check;
    private final Shop shop;
    private final Bank bank;
    private final String pawl;
    private final Desk desk;
    private final List<Device> devices = new ArrayList<>();

    DeviceChecks(Check check, Shop shop, Bank bank, String pawl, Desk desk) {
        this.check = check;
        this.shop = shop;
        this.bank = bank;
        this.pawl = pawl;
        this.desk = desk;
    }

    void run() {
        for (String version : List.of("3.1", "3.3", "4.0 EC_P384")) {
            check(version + " is bound", () -> devices.add(bind(version)));
        }
        if (devices.size() < 3) {
            return;
        }
        for (int i = 0; i < devices.size(); i++) {
            live(i);
        }
        check("of " + OPERATIONS + " operations that three phones decide at once each has one decision, which the audit log has too",
                this::decide);
        for (int i = 0; i < devices.size(); i++) {
            Device owner = devices.get(i);
            check("an operation for " + owner.version + " alone is unknown to the others", () -> decideAlone(owner));
        }
    }

    /** From wrong PINs to the removal of a phone, in whose place another one comes. */
    private void live(int i) {
        String version = devices.get(i).version;
        alone(i, ATTEMPTS + " wrong PINs block it", () -> {
            for (int failed = 0; failed < ATTEMPTS; failed++) {
                validation(devices.get(i), Phone.WRONG_PIN).send().expect(401);
            }
            isRefused(devices.get(i), "BLOCKED");
        });
        alone(i, "the bank unblocks it", () -> change(i, "UNBLOCK"));
        alone(i, "the bank blocks it", () -> change(i, "BLOCK"));
        alone(i, "the bank unblocks it again", () -> change(i, "UNBLOCK"));
        if (i == UPGRADING) {
            alone(i, "it moves to 4.0", () -> {
                Phone4 phone = (Phone4) shop.sell("4.0 EC_P384");
                phone.upgrade((Phone3) devices.get(i).phone);
                devices.set(i, new Device(version, phone, phone.createToken()));
                isServed(devices.get(i));
            });
        }
        alone(i, "it is removed", () -> {
            Device device = devices.get(i);
            switch (i) {
                case 0 -> bank.deleteFurther(device.id());
                case UPGRADING -> device.phone.signed("POST", pawl + "/pa/v4/activation/remove", "/pa/activation/remove", null,
                        Phone.Factors.POSSESSION_KNOWLEDGE, Phone.PIN).exchange();
                default -> bank.changeFurther(device.id(), "REMOVE");
            }
            isRefused(device, "REMOVED");
        });
        alone(i, "another one is bound in its place", () -> devices.set(i, bind(version)));
    }

    private void change(int i, String change) throws Exception {
        bank.changeFurther(devices.get(i).id(), change);
        if (change.equals("UNBLOCK")) {
            isServed(devices.get(i));
        } else {
            isRefused(devices.get(i), "BLOCKED");
        }
    }

    /**
     * A step of one phone, around which the rows of the others stay as they are, byte for byte. Each of those has failed once before, so that
     * it shows when their failed attempts are forgotten, and is served afterwards.
     */
    private void alone(int changed, String what, Check.Body step) {
        check(devices.get(changed).version + ": " + what + ", and nothing of the others changes", () -> {
            List<Device> others = devices.stream().filter(device -> device != devices.get(changed)).toList();
            for (Device other : others) {
                validation(other, Phone.WRONG_PIN).send().expect(401);
            }
            try {
                leaveAlone(others, changed, step);
            } catch (Exception | AssertionError e) {
                // The next step begins as this one did.
                for (Device other : others) {
                    validation(other, Phone.PIN).send();
                }
                throw e;
            }
            for (Device other : others) {
                isServed(other);
            }
        });
    }

    private void leaveAlone(List<Device> others, int changed, Check.Body step) throws Exception {
        List<String> before = rows(others);
        for (String rows : before) {
            Check.that(rows.contains("\"failed_attempts\": 1,"), "a wrong PIN is not stored");
        }
        String own = desk.rows(devices.get(changed).id());
        step.run();
        Check.that(!own.equals(desk.rows(devices.get(changed).id())), "nothing of the phone itself has changed");
        List<String> after = rows(others);
        for (int i = 0; i < others.size(); i++) {
            Check.that(before.get(i).equals(after.get(i)), "of " + others.get(i).version + " is stored no more "
                    + without(before.get(i), after.get(i)) + ", but " + without(after.get(i), before.get(i)));
        }
    }

    private static List<String> without(String rows, String others) {
        List<String> left = new ArrayList<>(rows.lines().toList());
        left.removeAll(others.lines().toList());
        return left;
    }

    private List<String> rows(List<Device> of) throws Exception {
        List<String> rows = new ArrayList<>();
        for (Device device : of) {
            rows.add(desk.rows(device.id()));
        }
        return rows;
    }

    private Device bind(String version) throws Exception {
        Phone phone = shop.sell(version);
        JsonNode registered = bank.registerFurther(USER);
        phone.activate(registered.path("activationQrCodeData").asText().split("#")[0]);
        Check.equal(registered.path("registrationId").asText(), phone.activationId(), "the id of the activation");
        bank.commitFurther(phone.activationId());
        Device device = new Device(version, phone, phone.createToken());
        Object push = Map.of("platform", "fcm", "token", "push-" + phone.activationId());
        device.token.request("POST", pawl + "/api/push/device/register", object(push)).exchange();
        isServed(device);
        for (String table : List.of("activation", "registration", "push_registration", "token")) {
            Check.that(desk.rows(device.id()).lines().anyMatch(row -> row.startsWith(table + " {")), "no row is in " + table);
        }
        return device;
    }

    /** Its code is right, its token good, and nothing counts. */
    private void isServed(Device device) throws Exception {
        validation(device, Phone.PIN).exchange();
        read(device, "/list", Map.of()).exchange();
        Check.equal(0, device.phone.failedAttempts(), "failed attempts of " + device.version);
    }

    private void isRefused(Device device, String state) throws Exception {
        Check.equal(state, bank.stateOf(device.id()), "the state");
        validation(device, Phone.PIN).send().expect(401);
        read(device, "/list", Map.of()).send().expect(401);
    }

    /** Each way in which three phones may say yes or no comes up twice at least. */
    private void decide() throws Exception {
        List<String> ids = new ArrayList<>();
        for (int n = 0; n < OPERATIONS; n++) {
            ids.add(bank.createOperation(USER, null));
        }
        for (Device device : devices) {
            Check.that(listed(device).containsAll(ids), device.version + " does not list all of them");
        }
        for (int n = 0; n < OPERATIONS; n++) {
            String id = ids.get(n);
            List<Request> requests = new ArrayList<>();
            for (int i = 0; i < devices.size(); i++) {
                requests.add(decision(devices.get(i), id, isApproval(n, i)));
            }
            List<Reply> replies = sendAtOnce(requests, n);
            List<Integer> winners = new ArrayList<>();
            for (int i = 0; i < devices.size(); i++) {
                if (replies.get(i).status() == 200) {
                    winners.add(i);
                } else {
                    isError(replies.get(i), 400, "OPERATION_ALREADY_FINISHED");
                }
            }
            Check.equal(1, winners.size(), "the number of decisions of operation " + n);
            isDecided(id, isApproval(n, winners.get(0)), devices.get(winners.get(0)));
        }
        for (Device device : devices) {
            isServed(device);
        }
    }

    /** The answers, in the order of the requests. Which of them is on its way first changes with `n`. */
    private static List<Reply> sendAtOnce(List<Request> requests, int n) {
        List<CompletableFuture<Reply>> sent = new ArrayList<>(Collections.nCopies(requests.size(), null));
        for (int i = 0; i < requests.size(); i++) {
            int at = (i + n) % requests.size();
            sent.set(at, CompletableFuture.supplyAsync(() -> send(requests.get(at))));
        }
        return sent.stream().map(CompletableFuture::join).toList();
    }

    private static boolean isApproval(int n, int i) {
        return (n >> i & 1) == 0;
    }

    private void isDecided(String id, boolean isApproved, Device by) throws Exception {
        Check.equal(isApproved ? "APPROVED" : "REJECTED", bank.operation(id).path("status").asText(), "the state of an operation");
        List<String> decisions = new ArrayList<>();
        for (JsonNode item : bank.audit(USER)) {
            String type = item.path("eventType").asText();
            boolean isDecision = type.equals("operation_approved") || type.equals("operation_rejected");
            if (isDecision && item.path("eventData").asText().contains(id)) {
                decisions.add(type + " by " + item.path("activationId").asText());
            }
        }
        Check.equal(List.of((isApproved ? "operation_approved by " : "operation_rejected by ") + by.id()), decisions, "the audit log");
    }

    /** To the others it is what an operation is that does not exist. */
    private void decideAlone(Device owner) throws Exception {
        String id = bank.createOperation(USER, owner.id());
        String unknown = UUID.randomUUID().toString();
        for (Device other : devices) {
            if (other == owner) {
                continue;
            }
            Check.that(!listed(other).contains(id), other.version + " lists it");
            isAsUnknown(read(other, "/detail", Map.of("id", id)), read(other, "/detail", Map.of("id", unknown)));
            isAsUnknown(read(other, "/detail/claim", Map.of("id", id)), read(other, "/detail/claim", Map.of("id", unknown)));
            for (boolean isApproval : List.of(true, false)) {
                // One after the other: a code that another overtook is refused.
                Reply of = decision(other, id, isApproval).send();
                Reply ofUnknown = decision(other, unknown, isApproval).send();
                isError(of, 400, "INVALID_OPERATION");
                Check.equal(ofUnknown.text(), of.text(), "the answer to a decision");
            }
            isServed(other);
        }
        JsonNode before = bank.operation(id);
        Check.equal("PENDING", before.path("status").asText(), "the state of the operation");
        Check.equal(0, before.path("failureCount").asInt(), "failures of the operation");
        Check.that(listed(owner).contains(id), owner.version + " does not list it");
        decision(owner, id, true).exchange();
        isDecided(id, true, owner);
    }

    private static void isAsUnknown(Request request, Request ofUnknown) throws Exception {
        Reply reply = request.send();
        isError(reply, 400, "INVALID_OPERATION");
        Check.equal(ofUnknown.send().text(), reply.text(), "the answer to a question");
    }

    private static void isError(Reply reply, int status, String code) throws IOException {
        Check.equal(code, reply.expect(status).json().path("responseObject").path("code").asText(), "the error");
    }

    private List<String> listed(Device device) throws Exception {
        List<String> ids = new ArrayList<>();
        read(device, "/list", Map.of()).exchange().path("responseObject").forEach(one -> ids.add(one.path("id").asText()));
        return ids;
    }

    private Request read(Device device, String path, Object what) throws Exception {
        return device.token.request("POST", pawl + MOBILE_TOKEN + path, object(what));
    }

    /** The data of the template `login`. */
    private Request decision(Device device, String id, boolean isApproval) throws Exception {
        Object what = isApproval ? Map.of("id", id, "data", "A2") : Map.of("id", id, "reason", "UNEXPECTED_OPERATION");
        String path = isApproval ? "/authorize" : "/cancel";
        Phone.Factors factors = isApproval ? Phone.Factors.POSSESSION_KNOWLEDGE : Phone.Factors.POSSESSION;
        return device.phone.signed("POST", pawl + MOBILE_TOKEN + path, "/operation" + path, object(what), factors, Phone.PIN);
    }

    private Request validation(Device device, String pin) throws Exception {
        return validation(device.phone, pawl, pin);
    }

    /** A code that pawl says of whether it is right. */
    static Request validation(Phone phone, String pawl, String pin) throws Exception {
        String path = phone instanceof Phone4 ? "/auth/validate" : "/signature/validate";
        String url = pawl + (phone instanceof Phone4 ? "/pa/v4" : "/pa/v3") + path;
        return phone.signed("POST", url, "/pa" + path, new byte[0], Phone.Factors.POSSESSION_KNOWLEDGE, pin);
    }

    private static byte[] object(Object value) {
        return Http.bytes(Map.of("requestObject", value));
    }

    /** For threads of a check, which may not throw. */
    private static Reply send(Request request) {
        try {
            return request.send();
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private void check(String what, Check.Body body) {
        check.run("devices: " + what, body);
    }
}
