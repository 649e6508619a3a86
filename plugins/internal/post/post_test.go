package post

import "testing"

func TestHTTPToANameThatIsAnotherMachineIsRefused(t *testing.T) {
	if err := OnlyLoopback("tcp", "192.0.2.1:80", nil); err == nil {
		t.Error("it is allowed")
	}
	for _, here := range []string{"127.0.0.1:80", "[::1]:80"} {
		if err := OnlyLoopback("tcp", here, nil); err != nil {
			t.Error(here, err)
		}
	}
}
