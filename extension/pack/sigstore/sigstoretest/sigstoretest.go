// Package sigstoretest is a Sigstore for tests. It has its own authority, log and timestamp authority, from sigstore-go's
// tests, and makes bundles in the form that cosign writes. It needs no network.
package sigstoretest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"google.golang.org/protobuf/proto"

	"github.com/stilehost/stile/extension/pack"
)

// Network is one instance of Sigstore.
type Network struct{ ca *ca.VirtualSigstore }

// New returns a Sigstore that nobody else trusts.
func New() (*Network, error) {
	authority, err := ca.NewVirtualSigstore()
	return &Network{authority}, err
}

// Parts are the parts of a trusted root besides the authority.
type Parts struct{ Log, Timestamps, CertificateLog bool }

// Root returns the trusted root, as JSON.
func (n *Network) Root(p Parts) ([]byte, error) {
	logs, ctLogs := map[string]*root.TransparencyLog{}, map[string]*root.TransparencyLog{}
	var authorities []root.TimestampingAuthority
	if p.Log {
		logs = n.ca.RekorLogs()
	}
	if p.CertificateLog {
		ctLogs = n.ca.CTLogs()
	}
	if p.Timestamps {
		authorities = n.ca.TimestampingAuthorities()
	}
	// A file has the names of logs as bytes.
	for _, some := range []map[string]*root.TransparencyLog{logs, ctLogs} {
		for name, log := range some {
			id, err := hex.DecodeString(name)
			if err != nil {
				return nil, err
			}
			log.ID = id
		}
	}
	r, err := root.NewTrustedRoot(root.TrustedRootMediaType01, n.ca.FulcioCertificateAuthorities(), ctLogs, authorities, logs)
	if err != nil {
		return nil, err
	}
	return r.MarshalJSON()
}

// SignBlob returns what cosign sign-blob --bundle makes: a signature of bytes by somebody for whom an issuer vouched, with a
// current timestamp and a log entry with another time.
func (n *Network) SignBlob(identity, issuer string, what []byte, logged time.Time) (*protobundle.Bundle, error) {
	e, err := n.ca.SignAtTime(identity, issuer, what, logged)
	if err != nil {
		return nil, err
	}
	b, content, err := n.bundle(e)
	if err != nil {
		return nil, err
	}
	b.Content = &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
		MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: content.MessageSignatureContent().Digest()},
		Signature:     content.Signature(),
	}}
	return b, nil
}

// Attest returns what cosign sign and cosign attest attach in a registry: a statement about bytes, in a log of the first
// version of Rekor or, without a time of its own, of the second.
func (n *Network) Attest(identity, issuer, predicateType string, what []byte, rekor int) (*protobundle.Bundle, error) {
	statement := fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":"%x"}}],"predicateType":%q,"predicate":{}}`,
		sha256.Sum256(what), predicateType)
	var e *ca.TestEntity
	var err error
	if rekor == 2 {
		e, err = n.ca.AttestAtTimeHashedRekordV2(identity, issuer, statement, time.Time{})
	} else {
		e, err = n.ca.AttestAtTime(identity, issuer, statement, time.Now().Add(time.Minute), true)
	}
	if err != nil {
		return nil, err
	}
	b, content, err := n.bundle(e)
	if err != nil {
		return nil, err
	}
	b.Content = &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
		PayloadType: "application/vnd.in-toto+json", Payload: statement, Signatures: []*protodsse.Signature{{Sig: content.Signature()}},
	}}
	return b, nil
}

// Record puts a signature of bytes, by a key that is given as PEM, into the log, and the entry into its bundle.
func (n *Network) Record(b *protobundle.Bundle, key, what []byte) error {
	body, err := json.Marshal(map[string]any{
		"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": map[string]any{
			"data":      map[string]any{"hash": map[string]any{"algorithm": "sha256", "value": fmt.Sprintf("%x", sha256.Sum256(what))}},
			"signature": map[string]any{"content": b.GetMessageSignature().GetSignature(), "publicKey": map[string]any{"content": key}},
		},
	})
	if err != nil {
		return err
	}
	name, err := n.ca.RekorLogID()
	if err != nil {
		return err
	}
	id, err := hex.DecodeString(name)
	if err != nil {
		return err
	}
	e, err := n.promised(&protorekor.TransparencyLogEntry{
		LogIndex: 7, LogId: &protocommon.LogId{KeyId: id}, IntegratedTime: time.Now().Unix(), CanonicalizedBody: body,
	})
	b.VerificationMaterial.TlogEntries = append(b.GetVerificationMaterial().GetTlogEntries(), e)
	return err
}

// bundle returns a bundle without its content.
func (n *Network) bundle(e *ca.TestEntity) (*protobundle.Bundle, verify.SignatureContent, error) {
	content, err := e.VerificationContent()
	if err != nil {
		return nil, nil, err
	}
	timestamps, err := e.Timestamps()
	if err != nil {
		return nil, nil, err
	}
	entries, err := e.TlogEntries()
	if err != nil {
		return nil, nil, err
	}
	signed, err := e.SignatureContent()
	if err != nil {
		return nil, nil, err
	}
	m := &protobundle.VerificationMaterial{
		Content:                   &protobundle.VerificationMaterial_Certificate{Certificate: &protocommon.X509Certificate{RawBytes: content.Certificate().Raw}},
		TimestampVerificationData: &protobundle.TimestampVerificationData{},
	}
	for _, s := range timestamps {
		m.TimestampVerificationData.Rfc3161Timestamps = append(m.TimestampVerificationData.Rfc3161Timestamps, &protocommon.RFC3161SignedTimestamp{SignedTimestamp: s})
	}
	for _, one := range entries {
		entry, err := n.entry(one)
		if err != nil {
			return nil, nil, err
		}
		m.TlogEntries = append(m.TlogEntries, entry)
	}
	return &protobundle.Bundle{MediaType: pack.BundleType, VerificationMaterial: m}, signed, nil
}

// entry returns an entry of the log in the form of a bundle.
func (n *Network) entry(entry *tlog.Entry) (*protorekor.TransparencyLogEntry, error) {
	e := proto.CloneOf(entry.TransparencyLogEntry())
	if entry.IsRekorV2() {
		e.IntegratedTime = 0
		return e, nil
	}
	return n.promised(e)
}

// promised adds the log's promise and proof to an entry.
func (n *Network) promised(e *protorekor.TransparencyLogEntry) (*protorekor.TransparencyLogEntry, error) {
	body := e.GetCanonicalizedBody()
	promise, err := n.ca.RekorSignPayload(tlog.RekorPayload{
		Body: base64.StdEncoding.EncodeToString(body), IntegratedTime: e.GetIntegratedTime(), LogIndex: e.GetLogIndex(), LogID: hex.EncodeToString(e.GetLogId().GetKeyId()),
	})
	if err != nil {
		return nil, err
	}
	proof, err := n.ca.GetInclusionProof(body)
	if err != nil {
		return nil, err
	}
	rootHash, err := hex.DecodeString(*proof.RootHash)
	if err != nil {
		return nil, err
	}
	var kind struct{ Kind, APIVersion string }
	if err := json.Unmarshal(body, &kind); err != nil {
		return nil, err
	}
	e.KindVersion = &protorekor.KindVersion{Kind: kind.Kind, Version: kind.APIVersion}
	e.InclusionPromise = &protorekor.InclusionPromise{SignedEntryTimestamp: promise}
	e.InclusionProof = &protorekor.InclusionProof{
		LogIndex: *proof.LogIndex, TreeSize: *proof.TreeSize, RootHash: rootHash, Checkpoint: &protorekor.Checkpoint{Envelope: *proof.Checkpoint},
	}
	return e, nil
}
