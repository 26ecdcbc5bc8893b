# shellcheck shell=bash
# Certificates for TLS tests, made once by keytool and kept in the cache. Sourced by `kafka`.
#
# All stores have the password `oncewire`. An authority `ca` signed:
#   broker      for localhost and 127.0.0.1
#   elsewhere   for elsewhere.invalid, so that its name never fits
#   client      for a client, CN=client
# and `stranger` is an authority that signed nothing: whoever trusts only it trusts none of them.
#
# Files: NAME.p12 (key and chain); client.jks; truststore.p12, truststore.jks, ca.pem, stranger.pem (whom to trust);
# client-chain.pem, client-key.pem, client-key-encrypted.pem, client.pem (chain and key in one file).
# Needs `fail` from process.sh.

CERTIFICATES_RECIPE=1 # part of the directory's name: a changed recipe makes new ones
CERTIFICATES_PASSWORD=oncewire

certificates() { # CACHE → directory
    local dir=$1/certificates-$CERTIFICATES_RECIPE
    if [[ ! -e $dir/complete ]]; then
        mkdir -p "$1"
        (
            flock 9
            [[ ! -e $dir/complete ]] || exit 0
            rm -rf "$dir"
            mkdir -p "$dir"
            make_certificates "$dir" >"$dir/log" 2>&1 || { tail -n 5 "$dir/log" >&2 && fail "could not make certificates; see $dir/log"; }
            touch "$dir/complete"
        ) 9>"$1/certificates.lock"
    fi
    echo "$dir"
}

key_tool() { # COMMAND STORE ARG...
    keytool -J-XX:TieredStopAtLevel=1 -J-Xshare:auto "$1" -keystore "$2" -storetype PKCS12 -storepass "$CERTIFICATES_PASSWORD" -noprompt "${@:3}"
}

make_authority() { # DIR NAME
    key_tool -genkeypair "$1/$2.p12" -alias "$2" -keyalg EC -groupname secp256r1 -dname "CN=$2" -validity 3650 -ext bc:c &&
        key_tool -exportcert "$1/$2.p12" -alias "$2" -rfc -file "$1/$2.pem"
}

make_signed() { # DIR NAME KEY_ALGORITHM EXTENSION
    local dir=$1 name=$2 extension=()
    [[ -z $4 ]] || extension=(-ext "$4")
    key_tool -genkeypair "$dir/$name.p12" -alias "$name" -keyalg "$3" -dname "CN=$name" -validity 3650 &&
        key_tool -certreq "$dir/$name.p12" -alias "$name" -file "$dir/$name.csr" &&
        key_tool -gencert "$dir/ca.p12" -alias ca -validity 3650 "${extension[@]}" -rfc -infile "$dir/$name.csr" -outfile "$dir/$name-only.pem" &&
        cat "$dir/$name-only.pem" "$dir/ca.pem" >"$dir/$name-chain.pem" &&
        key_tool -importcert "$dir/$name.p12" -alias "$name" -file "$dir/$name-chain.pem" &&
        rm "$dir/$name.csr" "$dir/$name-only.pem"
}

as_jks() { # DIR NAME: Java's old format, which keytool advises against and users have
    keytool -importkeystore -srckeystore "$1/$2.p12" -srcstoretype PKCS12 -srcstorepass "$CERTIFICATES_PASSWORD" \
        -destkeystore "$1/$2.jks" -deststoretype JKS -deststorepass "$CERTIFICATES_PASSWORD" -noprompt
}

make_certificates() { # DIR
    local dir=$1
    make_authority "$dir" ca && make_authority "$dir" stranger &&
        make_signed "$dir" broker EC 'san=dns:localhost,ip:127.0.0.1' &&
        make_signed "$dir" elsewhere EC 'san=dns:elsewhere.invalid' &&
        make_signed "$dir" client RSA '' &&
        key_tool -importcert "$dir/truststore.p12" -alias ca -file "$dir/ca.pem" &&
        as_jks "$dir" truststore && as_jks "$dir" client &&
        java -XX:TieredStopAtLevel=1 "$here/PemKey.java" "$dir/client.p12" "$CERTIFICATES_PASSWORD" client "$dir/client-key.pem" "$dir/client-key-encrypted.pem" &&
        cat "$dir/client-key.pem" "$dir/client-chain.pem" >"$dir/client.pem"
}
