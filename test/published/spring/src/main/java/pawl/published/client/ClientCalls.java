package pawl.published.client;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Map;

/**
 * Calls of a published client of the reference, by the name of its method: its own classes read the request and write the answer. By reflection,
 * because the clients of 1.x and 2.x have classes of the same names.
 */
public final class ClientCalls {

    private static final ObjectMapper JSON = new ObjectMapper()
            .configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, true);
    private static final String PACKAGE = "com.wultra.security.powerauth.rest.client.";

    private final Object client;

    public ClientCalls(Object client) {
        this.client = client;
    }

    /** The client `name` of this class path, for a server below `url`, with HTTP Basic. */
    public static Object open(String name, String url, String token, String secret) throws Exception {
        Class<?> configurationClass = Class.forName(PACKAGE + "PowerAuthRestClientConfiguration");
        Object configuration = configurationClass.getConstructor().newInstance();
        configurationClass.getMethod("setPowerAuthClientToken", String.class).invoke(configuration, token);
        configurationClass.getMethod("setPowerAuthClientSecret", String.class).invoke(configuration, secret);
        return Class.forName(PACKAGE + name).getConstructor(String.class, configurationClass).newInstance(url, configuration);
    }

    /** An answer: what the client gave, or the error that it threw. */
    public record Answer(int status, Object body) {
    }

    public Answer call(String method, JsonNode request) throws Exception {
        try {
            Method found = find(method, request);
            Object given = found.getParameterCount() == 0
                    ? found.invoke(client)
                    : found.invoke(client, JSON.treeToValue(request, found.getParameterTypes()[0]));
            return new Answer(200, JSON.writeValueAsBytes(given));
        } catch (InvocationTargetException e) {
            Throwable cause = e.getCause();
            Object error = cause.getClass().getMethod("getPowerAuthError").invoke(cause);
            Object known = ((java.util.Optional<?>) error).orElse(null);
            return new Answer(400, JSON.writeValueAsBytes(known == null ? Map.of("message", String.valueOf(cause.getMessage())) : known));
        }
    }

    private Method find(String name, JsonNode request) throws NoSuchMethodException {
        int parameters = request == null || request.isNull() || request.isEmpty() ? 0 : 1;
        for (Method method : client.getClass().getMethods()) {
            boolean isRequest = parameters == 0 || method.getParameterCount() == 1
                    && method.getParameterTypes()[0].getSimpleName().endsWith("Request");
            if (method.getName().equals(name) && method.getParameterCount() == parameters && isRequest) {
                return method;
            }
        }
        throw new NoSuchMethodException(name);
    }
}
