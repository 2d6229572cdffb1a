package pawl.published.spring;

import com.wultra.security.powerauth.client.PowerAuthClient;
import io.getlime.security.powerauth.rest.api.spring.annotation.support.PowerAuthAnnotationInterceptor;
import io.getlime.security.powerauth.rest.api.spring.annotation.support.PowerAuthEncryptionArgumentResolver;
import io.getlime.security.powerauth.rest.api.spring.annotation.support.PowerAuthWebArgumentResolver;
import io.getlime.security.powerauth.rest.api.spring.converter.ActivationStatusConverter;
import io.getlime.security.powerauth.rest.api.spring.filter.EncryptionResponseBodyAdvice;
import io.getlime.security.powerauth.rest.api.spring.filter.PowerAuthRequestFilter;
import io.getlime.security.powerauth.rest.api.spring.provider.PowerAuthAuthenticationProvider;
import io.getlime.security.powerauth.rest.api.spring.provider.PowerAuthEncryptionProvider;
import io.getlime.security.powerauth.rest.api.spring.service.HttpCustomizationService;
import java.security.Security;
import java.util.List;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.autoconfigure.security.servlet.SecurityAutoConfiguration;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.boot.web.servlet.context.ServletWebServerApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Lazy;
import org.springframework.web.method.support.HandlerMethodArgumentResolver;
import org.springframework.web.servlet.config.annotation.InterceptorRegistry;
import org.springframework.web.servlet.config.annotation.WebMvcConfigurer;
import pawl.published.client.ClientCalls;

/**
 * A bank's Spring service with the published library and client of the reference, set up as their documentation says. Where the reference would be, is pawl:
 * REFERENCE_URL, with REFERENCE_TOKEN and REFERENCE_SECRET. Ends when its input does.
 */
// The library brings Spring Security, which would ask phones for a password.
@SpringBootApplication(exclude = SecurityAutoConfiguration.class)
@Import({PowerAuthAnnotationInterceptor.class, PowerAuthAuthenticationProvider.class, PowerAuthEncryptionProvider.class,
    ActivationStatusConverter.class, HttpCustomizationService.class, EncryptionResponseBodyAdvice.class})
public class SpringBank implements WebMvcConfigurer {

    private final PowerAuthAnnotationInterceptor interceptor;

    public SpringBank(@Lazy PowerAuthAnnotationInterceptor interceptor) {
        this.interceptor = interceptor;
    }

    public static void main(String[] args) throws Exception {
        Security.addProvider(new BouncyCastleProvider());
        ServletWebServerApplicationContext context =
                (ServletWebServerApplicationContext) SpringApplication.run(SpringBank.class, args);
        System.out.println("bank listens on http://127.0.0.1:" + context.getWebServer().getPort());
        while (System.in.read() >= 0) {
            // Whoever started it closes its input.
        }
        System.exit(0);
    }

    @Bean
    static PowerAuthClient powerAuthClient() throws Exception {
        return (PowerAuthClient) ClientCalls.open("PowerAuthRestClient", System.getenv("REFERENCE_URL"),
                System.getenv("REFERENCE_TOKEN"), System.getenv("REFERENCE_SECRET"));
    }

    @Bean
    static FilterRegistrationBean<PowerAuthRequestFilter> powerAuthFilter() {
        FilterRegistrationBean<PowerAuthRequestFilter> registration = new FilterRegistrationBean<>(new PowerAuthRequestFilter());
        registration.addUrlPatterns("/*");
        return registration;
    }

    @Override
    public void addArgumentResolvers(List<HandlerMethodArgumentResolver> resolvers) {
        resolvers.add(new PowerAuthWebArgumentResolver());
        resolvers.add(new PowerAuthEncryptionArgumentResolver());
    }

    @Override
    public void addInterceptors(InterceptorRegistry registry) {
        registry.addInterceptor(interceptor);
    }
}
