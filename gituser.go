package main

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"

	"airlock/internal/gitconfig"
	"airlock/overlay"
)

// gitUser says where the person's configuration of git lies: that of the server's user, and that of the
// workspace's owner, for whom root may serve it.
func gitUser(p places, dir string, environ []string) overlay.GitUser {
	u := overlay.GitUser{Home: p.home}
	homes := slices.Clone(p.homes)
	if info, err := os.Stat(dir); err == nil {
		uid, _ := ownerOf(info)
		if owner, err := user.LookupId(strconv.Itoa(uid)); err == nil && filepath.IsAbs(owner.HomeDir) && uid != os.Geteuid() {
			u.Home = filepath.Clean(owner.HomeDir)
			homes = append(homes, u.Home)
		}
	}
	for _, home := range homes {
		for _, file := range gitconfig.OfUser(home, func(name string) string { return lookup(environ, name) }) {
			if !slices.Contains(u.Files, file) {
				u.Files = append(u.Files, file)
			}
		}
	}
	return u
}
