import CacheCore
import Testing

@Suite("Addresses and the policy for connecting to them")
struct AddressPolicyTests {
  @Test(
    "an address outside the public Internet has its kinds",
    arguments: [
      ("127.0.0.1", .loopback), ("127.255.0.9", .loopback), ("::1", .loopback), ("::ffff:127.0.0.1", .loopback),
      ("10.1.2.3", .privateUse), ("172.16.0.1", .privateUse), ("172.31.255.255", .privateUse), ("192.168.1.1", .privateUse),
      ("100.64.0.1", .privateUse), ("100.127.255.255", .privateUse), ("fc00::1", .privateUse), ("fdff::1", .privateUse),
      ("169.254.7.7", .linkLocal), ("fe80::1%eth0", .linkLocal), ("[fe80::1]", .linkLocal), ("febf::1", .linkLocal),
      ("169.254.169.254", [.linkLocal, .metadata]), ("fd00:ec2::254", [.privateUse, .metadata]),
      ("100.100.100.200", [.privateUse, .metadata]), ("168.63.129.16", .metadata),
      ("::ffff:169.254.169.254", [.linkLocal, .metadata]), ("64:ff9b::a9fe:a9fe", [.linkLocal, .metadata]),
      ("2002:a00:1::", .privateUse), ("::127.0.0.1", .loopback),
      ("224.0.0.1", .multicast), ("ff02::1", .multicast), ("255.255.255.255", [.reserved, .multicast]),
      ("0.0.0.0", .reserved), ("::", .reserved), ("192.0.2.1", .reserved), ("198.19.0.1", .reserved), ("240.0.0.1", .reserved),
      ("2001:db8::1", .reserved), ("2001:0:5ef5:79fd::1", .reserved),
    ] as [(String, AddressPolicy.Kinds)])
  func kinds(text: String, kinds: AddressPolicy.Kinds) throws {
    let address = try #require(IPAddress(text))
    #expect(AddressPolicy.kinds(of: address) == kinds)
    #expect(!AddressPolicy.publicOnly.allows(address))
  }

  @Test(
    "a public address is allowed, even next to a refused range",
    arguments: [
      "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1", "169.253.255.255",
      "169.255.0.0",
      "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "223.255.255.255", "168.63.129.17", "2606:4700::1111",
      "2a00::1", "64:ff9b::808:808", "2001:200::1", "fbff::1", "2002:808:808::",
    ])
  func publicAddresses(text: String) throws {
    let address = try #require(IPAddress(text))
    #expect(AddressPolicy.kinds(of: address) == [])
    #expect(AddressPolicy.publicOnly.allows(address))
  }

  @Test(
    "text that is not a plain address is rejected",
    arguments: ["", "127.1", "0x7f.0.0.1", "1.2.3.4.5", "host", "::g", "1.2.3.4\0", "[]"])
  func notAnAddress(text: String) { #expect(IPAddress(text) == nil) }

  @Test("only 4 or 16 bytes form an address", arguments: [0, 3, 4, 5, 15, 16, 17])
  func byteCounts(count: Int) {
    #expect((IPAddress(bytes: Array(repeating: 1, count: count)) != nil) == (count == 4 || count == 16))
  }

  @Test("an address prints in its usual notation", arguments: ["192.0.2.1", "2001:db8::1", "::1", "fe80::1:2"])
  func description(text: String) throws { #expect(try #require(IPAddress(text)).description == text) }

  @Test("an exception is allowed, but its neighbor is not")
  func exceptions() throws {
    let own = try #require(IPAddress("10.0.0.8"))
    let policy = AddressPolicy(refusing: .all, except: [own])
    #expect(policy.allows(own))
    #expect(!policy.allows(try #require(IPAddress("10.0.0.9"))))
  }

  @Test("a policy refuses only the given kinds")
  func someKinds() throws {
    let policy = AddressPolicy(refusing: .metadata)
    #expect(policy.allows(try #require(IPAddress("127.0.0.1"))))
    #expect(!policy.allows(try #require(IPAddress("169.254.169.254"))))
  }
}
