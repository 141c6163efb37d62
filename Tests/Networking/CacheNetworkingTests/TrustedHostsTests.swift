import Testing

@testable import CacheNetworking

@Suite("Trusted hosts") struct TrustedHostsTests {
  @Test(
    "a host is compared without regard to case, to the last dot and to the form of its name",
    arguments: [
      ("printer.local", "printer.local"), ("Printer.LOCAL", "printer.local"), ("printer.local", "PRINTER.local"),
      ("printer.local.", "printer.local"), ("printer.local", "printer.local."), ("bücher.example", "xn--bcher-kva.example"),
      ("xn--bcher-kva.example", "bücher.example"), ("BÜCHER.example.", "xn--bcher-kva.example"), ("192.168.0.2", "192.168.0.2"),
      ("::1", "[::1]"), ("[::1]", "::1"), ("0:0:0:0:0:0:0:1", "::1"), ("FE80::2", "fe80::2"),
      ("printer.local:443", "printer.local"),
      ("[::1]:443", "[::1]"),
    ])
  func trusted(entry: String, host: String) {
    #expect(TrustedHosts([entry]).contains(host: host, port: 443))
    #expect(TrustedHosts(["other", entry]).contains(host: host, port: 443))
  }

  @Test(
    "another host, a subdomain, another port and an invalid entry are not trusted",
    arguments: [
      ("printer.local", "printer"), ("printer.local", "a.printer.local"), ("a.printer.local", "printer.local"),
      ("*.local", "printer.local"), ("*", "printer.local"), ("printer.local", "printer.local.example"),
      ("printer.local:8443", "printer.local"), ("printer.local:0", "printer.local"), ("printer.local:99999", "printer.local"),
      ("printer.local:", "printer.local"), ("[::1]:8443", "::1"), ("::1", "::2"), ("192.168.0.2", "192.168.0.20"),
      ("https://printer.local", "printer.local"), ("", ""), (".", ""), ("", "printer.local"),
      ("printer.local..", "printer.local"),
    ])
  func refused(entry: String, host: String) {
    #expect(!TrustedHosts([entry]).contains(host: host, port: 443))
    #expect(!TrustedHosts([]).contains(host: host, port: 443))
  }
}
