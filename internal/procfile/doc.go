// Package procfile reads files that the kernel writes as they are read, below /proc and in cgroups, with as few system calls as it
// takes. It is for what each run reads; os.ReadFile makes a dozen calls for files that can be waited for, which these are not.
// What a file says is its reader's to know. It is a leaf: it imports nothing of airlock.
package procfile
