#if Service
import CacheTesting
import Foundation
import HTTPTypes
import ImageService
import Testing

@Suite("Signatures")
struct SigningTests {
  private let fixture: ServiceFixture

  init() throws {
    fixture = try ServiceFixture()
    try fixture.serve(try DrawnImage.png(8, 8))
  }

  @Test("a signed path gets an image")
  func signed() async throws {
    let served = try await fixture.get("width=4,format=png")
    #expect(served.status == 200)
    #expect(try served.header.size == PixelSize(4, 4))
  }

  @Test(
    "a path whose signature does not match gets 403, and nothing is loaded",
    arguments: [
      "/img", "/img/", "/img/x", "/img//width=4/a", "/img/width=4/https%3A%2F%2Fphotos.example.com%2Fcat.png",
      "/img/\(String(repeating: "A", count: 43))/width=4/https%3A%2F%2Fphotos.example.com%2Fcat.png",
      "/img/%00/width=4/a", "/other/a/b/c", "",
    ])
  func unsigned(_ path: String) async throws {
    let served = try await fixture.get(path: path)
    #expect(served.status == 403)
    #expect(served.problem == "invalidSignature")
    #expect(served.fields[.cacheControl] == "no-store")
    #expect(try fixture.requests().isEmpty)
  }

  @Test("every changed character of a signed path invalidates its signature")
  func changed() async throws {
    let path = fixture.key.path(for: ServiceFixture.image, operations: "width=4,format=png")
    for index in path.indices.dropFirst("/img/".count) {
      var changed = path
      changed.replaceSubrange(index...index, with: path[index] == "A" ? "B" : "A")
      let served = try await fixture.get(path: changed)
      #expect(served.status == 403, "\(changed)")
    }
    #expect(try fixture.requests().isEmpty)
  }

  @Test("a query, which no signature covers, is refused")
  func query() async throws {
    let path = fixture.key.path(for: ServiceFixture.image, operations: "width=4")
    #expect(try await fixture.get(path: path + "?x=1").status == 403)
  }

  @Test("a signature has one text only")
  func unusedBits() async throws {
    let path = fixture.key.path(for: ServiceFixture.image, operations: "width=4")
    let last = path.index(path.startIndex, offsetBy: "/img/".count + 42)
    // The last character has two bits that no byte uses.
    let others = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".filter { $0 != path[last] }
    for other in others {
      var changed = path
      changed.replaceSubrange(last...last, with: String(other))
      #expect(try await fixture.get(path: changed).status == 403)
    }
  }

  @Test("a path is refused after its expiry")
  func expiry() async throws {
    let expiry = Timestamp(seconds: fixture.clock.now.seconds + 10)
    #expect(try await fixture.get("width=4", expiresAt: expiry).status == 200)
    fixture.clock.advance(by: .seconds(20))
    let served = try await fixture.get("width=4", expiresAt: expiry)
    #expect(served.status == 403)
    #expect(served.problem == "invalidSignature")
  }

  @Test("results of paths with different expiry are one cached result")
  func expiryIsNotPartOfTheResult() async throws {
    let now = fixture.clock.now.seconds
    _ = try await fixture.get("width=4", expiresAt: Timestamp(seconds: now + 10))
    let served = try await fixture.get("width=4", expiresAt: Timestamp(seconds: now + 20))
    #expect(served.response.servedFrom == .memory)
  }

  @Test("old and new keys are accepted while both are set")
  func rotation() async throws {
    let (old, new) = (SigningKey.fixed(1), SigningKey.fixed(2))
    let oldPath = old.path(for: ServiceFixture.image, operations: "width=4")
    let newPath = new.path(for: ServiceFixture.image, operations: "width=4")
    try fixture.service.setKeys([new, old])
    #expect(try await fixture.get(path: oldPath).status == 200)
    #expect(try await fixture.get(path: newPath).status == 200)
    try fixture.service.setKeys([new])
    #expect(try await fixture.get(path: oldPath).status == 403)
    #expect(try await fixture.get(path: newPath).status == 200)
  }

  @Test("a service retains its keys if it gets none")
  func noKeys() async throws {
    #expect(throws: CacheError.self) { try fixture.service.setKeys([]) }
    #expect(try await fixture.get("width=4").status == 200)
  }

  @Test("a key needs 32 bytes in pairs of hexadecimal digits")
  func keys() throws {
    #expect(throws: CacheError.self) { try SigningKey(bytes: [1, 2, 3]) }
    #expect(throws: CacheError.self) { try SigningKey(hexadecimal: String(repeating: "0", count: 63)) }
    #expect(throws: CacheError.self) { try SigningKey(hexadecimal: String(repeating: "xy", count: 32)) }
    let key = try SigningKey(hexadecimal: String(repeating: "01", count: 32))
    #expect(key.path(for: "a/b", operations: "gray") == SigningKey.fixed(1).path(for: "a/b", operations: "gray"))
  }

  @Test("the error of an invalid key does not contain the key")
  func secrecy() throws {
    let error = #expect(throws: CacheError.self) { try SigningKey(hexadecimal: "secretsecret") }
    #expect(error?.description.contains("secretsecret") == false)
  }

  @Test("the signature is that of RFC 2104 with SHA-256, in base64url")
  func format() {
    // python3: base64.urlsafe_b64encode(hmac.new(bytes([1]*32), b"gray/a%2Fb", "sha256").digest())
    #expect(
      SigningKey.fixed(1).path(for: "a/b", operations: "gray") == "/img/OwbIl3KxVpGujcTcmOq_pY2Q2jTdHLGLzkO9GF29D4E/gray/a%2Fb")
  }
}
#endif
