package pack

// Limits bound what is read. A zero field means its default.
type Limits struct {
	// Component is the largest component, in bytes. Default 64 MiB.
	Component int64
	// Source is the largest size of all files together, in bytes. Default 8 MiB.
	Source int64
	// Files is the largest number of source files. Default 2,000.
	Files int
	// Part is the largest size of each other part, in bytes. Default 4 MiB.
	Part int64
	// Signatures is the largest number of signatures of a pack. Default 16.
	Signatures int
}

// MaxBundle is the largest Sigstore bundle, in bytes.
const MaxBundle = 1 * mib

const (
	kib = 1 << 10
	mib = 1 << 20

	maxManifest  = 64 * kib // bytes of an OCI manifest or index
	maxSignature = 16 * kib // bytes of a signature
	tarOverhead  = 4 * kib  // bytes of a file in an archive besides its content, including a long name and padding
)

// WithDefaults returns the limits with defaults instead of zeros.
func (l Limits) WithDefaults() Limits {
	orDefault(&l.Component, 64*mib)
	orDefault(&l.Source, 8*mib)
	orDefault(&l.Files, 2000)
	orDefault(&l.Part, 4*mib)
	orDefault(&l.Signatures, 16)
	return l
}

func orDefault[T int | int64](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// archive returns the maximum size of the source as an archive, in bytes.
func (l Limits) archive() int64 { return l.Source + int64(l.Files+1)*tarOverhead }

// Size returns how many bytes a file can have within the limits.
func (l Limits) Size() int64 {
	l = l.WithDefaults()
	return l.total() + int64(l.entries()+1)*tarOverhead + 2*maxPadding
}

// entries and total bound a file: the number of its entries, and the bytes in them.
func (l Limits) entries() int { return 16 + len(parts) + 2*l.Signatures }

func (l Limits) total() int64 {
	all := l.archive() + l.Part + 2*maxManifest // source, config, artifact, index
	for _, part := range parts {
		all += part.limit(l)
	}
	return all + int64(l.Signatures)*(maxManifest+maxSignature)
}
