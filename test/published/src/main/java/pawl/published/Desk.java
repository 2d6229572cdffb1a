package pawl.published;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;

/** What stands beside the pawl of a check: scripts/ci/desk.ts. */
record Desk(String url) {

    /** All that is stored of a phone, a row a line: table, then JSON. */
    String rows(String activationId) throws Exception {
        return ask("/rows/" + activationId).text();
    }

    /** A login of the user at the bank's OpenID provider: `code`, `nonce` and `codeVerifier`. The code is good once. */
    JsonNode logIn(String userId) throws Exception {
        return ask("/login/" + userId).json();
    }

    private Http.Reply ask(String path) throws Exception {
        return new Http.Request("GET", url + path, Map.of(), null, null).send().expect(200);
    }
}
