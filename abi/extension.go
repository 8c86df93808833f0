package abi

// ExtensionWorld is the world of extensions.
const ExtensionWorld = ExtensionPackage + "extension" + ContractVersion

// ExtensionTools is the interface every extension exports.
const ExtensionTools = ExtensionPackage + "tools" + ContractVersion

// ExtensionStepwise is the interface of a component whose calls can be made in steps.
const ExtensionStepwise = ExtensionPackage + "stepwise" + ContractVersion

// ExtensionMemory is the interface of a component whose memory the host can take away between two steps.
const ExtensionMemory = ExtensionPackage + "memory" + ContractVersion

// ExtensionEvaluator is the interface of a component that runs code which comes with a call.
const ExtensionEvaluator = ExtensionPackage + "evaluator" + ContractVersion

// Definition describes one tool: the record `definition` of stile:extension/tools.
type Definition struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// InputSchema is JSON Schema 2020-12, as JSON text.
	InputSchema string `json:"inputSchema"`
	// OutputSchema is nil if the tool declares no schema for its result.
	OutputSchema *string     `json:"outputSchema,omitempty"`
	Annotations  Annotations `json:"annotations"`
}

// Annotations are a tool's hints about itself. They are the guest's word only.
type Annotations struct {
	ReadOnly    bool `json:"readOnly"`
	Destructive bool `json:"destructive"`
	Idempotent  bool `json:"idempotent"`
	OpenWorld   bool `json:"openWorld"`
}

// Problem is one place where an input does not fit a tool's schema. Path is a JSON pointer into the input.
type Problem struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}

// MaxProblems is how many problems a report lists: of an input, of a source, of an extension.
const MaxProblems = 20

// Failure is a tool's own failure. It is only the guest's word.
type Failure struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	Stack   string `json:"stack,omitempty"`
}
