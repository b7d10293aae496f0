package main

import (
	"os/user"
	"strconv"
)

// userName is what a person calls a user, or "uid N" where the user database has no such id.
func userName(uid int) string {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return "uid " + strconv.Itoa(uid)
	}
	return u.Username
}
