import java.io.FileInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.AlgorithmParameters;
import java.security.KeyStore;
import java.util.Base64;
import javax.crypto.Cipher;
import javax.crypto.EncryptedPrivateKeyInfo;
import javax.crypto.SecretKey;
import javax.crypto.SecretKeyFactory;
import javax.crypto.spec.PBEKeySpec;

/** Writes the private key of a PKCS12 store as PEM, once plain and once encrypted: keytool cannot, and openssl may be absent. */
public class PemKey {
    public static void main(String[] arguments) throws Exception {
        String store = arguments[0], password = arguments[1], alias = arguments[2], plain = arguments[3], encrypted = arguments[4];
        KeyStore keys = KeyStore.getInstance("PKCS12");
        try (FileInputStream file = new FileInputStream(store)) {
            keys.load(file, password.toCharArray());
        }
        byte[] key = keys.getKey(alias, password.toCharArray()).getEncoded();
        write(plain, "PRIVATE KEY", key);

        String algorithm = "PBEWithHmacSHA256AndAES_256";
        SecretKey secret = SecretKeyFactory.getInstance(algorithm).generateSecret(new PBEKeySpec(password.toCharArray()));
        Cipher cipher = Cipher.getInstance(algorithm);
        cipher.init(Cipher.ENCRYPT_MODE, secret);
        byte[] sealed = cipher.doFinal(key);
        // The cipher's parameters go by a name that has no object identifier; the same bytes as PBES2 have one.
        AlgorithmParameters parameters = AlgorithmParameters.getInstance("PBES2");
        parameters.init(cipher.getParameters().getEncoded());
        write(encrypted, "ENCRYPTED PRIVATE KEY", new EncryptedPrivateKeyInfo(parameters, sealed).getEncoded());
    }

    private static void write(String path, String label, byte[] der) throws Exception {
        String body = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(der);
        Files.writeString(Path.of(path), "-----BEGIN " + label + "-----\n" + body + "\n-----END " + label + "-----\n");
    }
}
