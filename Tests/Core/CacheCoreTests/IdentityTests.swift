import CacheCore
import Testing

@Suite("Keys, revisions and component identities")
struct IdentityTests {
  @Test("keys with equal parts are equal and have equal hashes")
  func equality() {
    let parts = ["", "a", "b", "ab"]
    let triples = parts.flatMap { r in parts.flatMap { v in parts.map { (r, v, $0) } } }
    for (index, a) in triples.enumerated() {
      for (other, b) in triples.enumerated() {
        let (key, again) = (
          CacheKey(resource: a.0, variant: a.1, transform: a.2), CacheKey(resource: b.0, variant: b.1, transform: b.2)
        )
        #expect((key == again) == (index == other))
        if index == other { #expect(key.hashValue == again.hashValue) }
      }
    }
    #expect(Set(triples.map { CacheKey(resource: $0.0, variant: $0.1, transform: $0.2) }).count == triples.count)
  }

  @Test("keys are compared by bytes: canonically equal texts with different bytes are different keys")
  func bytes() {
    let (one, two) = ("caf\u{E9}", "cafe\u{301}")
    #expect(one == two)
    #expect(CacheKey(resource: one) != CacheKey(resource: two))
    #expect(CacheKey(resource: "r", variant: one) != CacheKey(resource: "r", variant: two))
    #expect(CacheKey(resource: "r", transform: one) != CacheKey(resource: "r", transform: two))
    #expect(Set([one, two].map { CacheKey(resource: $0) }).count == 2)
    #expect(CacheKey(resource: one) == CacheKey(resource: String(decoding: Array(one.utf8), as: UTF8.self)))
  }

  @Test("a key with another transform keeps its resource and variant")
  func otherTransform() {
    let key = CacheKey(resource: "r", variant: "v", transform: "f")
    #expect(key.with(transform: "g") == CacheKey(resource: "r", variant: "v", transform: "g"))
    #expect(key.with(transform: "").transform.isEmpty)
  }

  @Test(
    "a key prints as readable text",
    arguments: [
      (CacheKey(resource: "https://a/b"), "https://a/b"),
      (CacheKey(resource: "https://a/b", variant: "accept=png"), "https://a/b [accept=png]"),
      (CacheKey(resource: "https://a/b", transform: "thumb"), "https://a/b as thumb"),
      (CacheKey(resource: "https://a/b", variant: "v", transform: "f"), "https://a/b [v] as f"),
      (CacheKey(resource: ResourceID.make(uri: "https://a/b", key: "own", partition: "tenant")), "tenant / own"),
    ])
  func descriptions(_ key: CacheKey, _ text: String) {
    #expect(key.description == text)
  }

  @Test("random revisions never repeat, and print as 32 digits")
  func revisions() {
    let minted = (0..<1_000).map { _ in Revision.random() }
    #expect(Set(minted).count == 1_000)
    #expect(Revision(high: 1, low: 0xABC).description == "00000000000000010000000000000abc")
  }

  @Test("a component identity prints as its type and its parameters")
  func printedIdentity() {
    #expect("\(ComponentID(SystemClock.self))" == "CacheCore.SystemClock")
    #expect("\(ComponentID(SystemClock.self, parameters: "a"))" == "CacheCore.SystemClock(a)")
  }

  @Test("identities of the same type with equal parameters are equal, and unique identities differ")
  func components() {
    #expect(ComponentID(Int.self, parameters: "a") == ComponentID(Int.self, parameters: "a"))
    #expect(ComponentID(Int.self, parameters: "a") != ComponentID(Int.self, parameters: "b"))
    #expect(ComponentID(Int.self) != ComponentID(String.self))
    #expect(Set((0..<100).map { _ in ComponentID.unique(Int.self) }).count == 100)
  }
}
