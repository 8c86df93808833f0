package http

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/usagetest"
)

// chain is a server's key, and its certificate before others.
type chain struct {
	key   crypto.Signer
	certs [][]byte
}

// issued returns a certificate.
func issued(t *testing.T, c, issuer *x509.Certificate, public any, by crypto.Signer) []byte {
	t.Helper()
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, c, issuer, public, by)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// resigned replaces a signature with one that is as long as a key of these bits makes.
func resigned(t *testing.T, der []byte, bits int) []byte {
	t.Helper()
	var c struct {
		Content   asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}
	if _, err := asn1.Unmarshal(der, &c); err != nil {
		t.Fatal(err)
	}
	c.Signature = asn1.BitString{Bytes: make([]byte, bits/8), BitLength: bits}
	c.Signature.Bytes[bits/8-1] = 2
	der, err := asn1.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// sameName returns a chain of 100 authorities of one name, of which each could have signed the server's certificate, and none did.
func sameName(t *testing.T, key, signer crypto.Signer, public func(i int) any, bits int) chain {
	ca := &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	leaf := issued(t, &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"example.com"}}, ca, key.Public(), signer)
	if bits > 0 {
		leaf = resigned(t, leaf, bits)
	}
	all := chain{key, [][]byte{leaf}}
	for i := range 100 {
		ca.SerialNumber = big.NewInt(int64(2 + i))
		all.certs = append(all.certs, issued(t, ca, ca, public(i), signer))
	}
	return all
}

func ecKey(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// modulus returns a number that is as good as an RSA key's for one who only checks signatures.
func modulus(t *testing.T, bits int) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), uint(bits)))
	if err != nil {
		t.Fatal(err)
	}
	return n.SetBit(n.SetBit(n, bits-1, 1), 0, 1)
}

// handshakes are chains with the least time that the fastest machine takes for a handshake with them. Each chain that takes long to check
// takes a common machine at least ten times as long.
func handshakes(t *testing.T) map[string]measuredChain {
	t.Helper()
	small, p521 := ecKey(t, elliptic.P256()), ecKey(t, elliptic.P521())
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	other := ecKey(t, elliptic.P521()).Public()
	names := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"example.com"}}
	for i := range 12_000 {
		names.DNSNames = append(names.DNSNames, fmt.Sprintf("n%d.example", i))
	}
	one := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"example.com"}}
	return map[string]measuredChain{
		"one certificate":   {chain{small, [][]byte{issued(t, one, one, small.Public(), small)}}, handshakeWork},
		"a key of P-521":    {chain{p521, [][]byte{issued(t, one, one, p521.Public(), p521)}}, handshakeWork},
		"many names":        {chain{small, [][]byte{issued(t, names, names, small.Public(), small)}}, handshakeWork},
		"P-521 of one name": {sameName(t, small, p521, func(int) any { return other }, 0), 30 * time.Millisecond},
		"RSA of one name": {sameName(t, small, rsaKey, func(int) any {
			return &rsa.PublicKey{N: modulus(t, 8192), E: 1<<31 - 1}
		}, 8192), 30 * time.Millisecond},
	}
}

type measuredChain struct {
	chain
	least time.Duration
}

// TestHandshakesAreCharged has servers with certificates that take long to check. TestLongHandshakes compares the charge with the processor time.
func TestHandshakesAreCharged(t *testing.T) {
	quiet(t)
	for name, c := range handshakes(t) {
		t.Run(name, func(t *testing.T) {
			charged, took := handshakeWith(t, c.chain)
			t.Logf("%v were charged for %v", charged, took)
			if charged < c.least {
				t.Errorf("%v were charged, want at least %v", charged, c.least)
			}
		})
	}
}

// handshakeWith connects to a server once.
func handshakeWith(t *testing.T, with chain) (charged, took time.Duration) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{at: port(t, listener.Addr()), close: listener.Close, roots: x509.NewCertPool()}
	t.Cleanup(s.wait)
	s.measured(func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		secured := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{{Certificate: with.certs, PrivateKey: with.key}}, MinVersion: tls.VersionTLS12})
		_ = secured.HandshakeContext(t.Context())
		_, _ = secured.Read(make([]byte, 1))
	})
	var all work
	c, url := charging(t, s.at, s.roots, all.add)
	before := usagetest.Processor()
	have := do(t, c, Request{Method: "GET", URL: url})
	wantError(t, have.err, abi.ErrUnavailable, "certificate")
	s.wait()
	took = usagetest.Processor() - before - time.Duration(s.took.Load())
	return all.all(), took
}
