package egress

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	// authorityLife is how long certificates of a proxy are valid.
	authorityLife = 7 * 24 * time.Hour
	// maxLeaves is how many certificates of servers are kept, of about 2 KiB each.
	maxLeaves = 256
)

// authority signs certificates for the servers that one proxy stands in for. Its keys exist in memory only. It is safe for concurrent use.
type authority struct {
	key  *ecdsa.PrivateKey
	made *x509.Certificate
	leaf *ecdsa.PrivateKey // of all servers

	mu     sync.Mutex
	leaves map[string]*tls.Certificate // by names and addresses of servers
}

func newAuthority() (*authority, error) {
	a := &authority{leaves: map[string]*tls.Certificate{}}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, fmt.Errorf("egress: make a key: %w", err)
	}
	if a.leaf, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, fmt.Errorf("egress: make a key: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "Stile egress proxy"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err == nil {
		a.made, err = x509.ParseCertificate(der)
	}
	if err != nil {
		return nil, fmt.Errorf("egress: make a certificate authority: %w", err)
	}
	return a, nil
}

// certificate returns the certificate of a server, by its name or address.
func (a *authority) certificate(name string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.leaves[name]; known != nil {
		return known, nil
	}
	template := &x509.Certificate{
		NotBefore: a.made.NotBefore, NotAfter: a.made.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.made, a.leaf.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of %s: %w", name, err)
	}
	if len(a.leaves) == maxLeaves {
		clear(a.leaves)
	}
	// The authority is sent too, because a browser can be told to accept all chains with its key.
	made := &tls.Certificate{Certificate: [][]byte{der, a.made.Raw}, PrivateKey: a.leaf}
	a.leaves[name] = made
	return made, nil
}

// Authority is the certificate authority of a proxy that intercepts TLS.
type Authority struct {
	// PEM is its certificate, for a program's list of authorities.
	PEM []byte
	// SPKI is the SHA-256 of its public key in base64, as --ignore-certificate-errors-spki-list of Chromium takes it.
	SPKI string
}

func (a *authority) public() Authority {
	sum := sha256.Sum256(a.made.RawSubjectPublicKeyInfo)
	return Authority{
		PEM:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.made.Raw}),
		SPKI: base64.StdEncoding.EncodeToString(sum[:]),
	}
}
