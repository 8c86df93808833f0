package child

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the system end the process when this one ends, however that happens.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
