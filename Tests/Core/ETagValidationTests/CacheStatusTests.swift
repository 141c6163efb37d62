import CacheCore
import HTTPTypes
import Testing

@Suite("Cache-Status and cache tags")
struct CacheStatusTests {
  @Test("hits and forwarded requests are written as in RFC 9211")
  func members() {
    var hit = CacheStatus("Etagere", hitFor: .milliseconds(30_900))
    #expect(hit.description == "Etagere;hit;ttl=30")
    hit.key = "https://example.com/\"ä\\"
    hit.detail = "memory"
    (hit.isStored, hit.isCollapsed) = (true, true)
    #expect(hit.description == "Etagere;hit;ttl=30;key=\"https://example.com/\\\"%C3%A4\\\\\";detail=memory")
    var forward = CacheStatus("my cache", forwarded: .uriMiss)
    (forward.isStored, forward.isCollapsed, forward.lifetimeLeft, forward.detail) = (true, true, .seconds(-3), "a b\n")
    #expect(forward.description == "\"my cache\";fwd=uri-miss;ttl=-3;stored;collapsed;detail=\"a b%0A\"")
    #expect(CacheStatus("c", forwarded: .stale, status: 304).description == "c;fwd=stale;fwd-status=304")
    #expect(CacheStatus("c", hitFor: .seconds(Int64.max)).description == "c;hit;ttl=999999999999999")
    #expect(CacheStatus("").description == "\"\";hit")
  }

  @Test("the member is appended after those of earlier caches")
  func appended() {
    var fields = HTTPFields(lines: ["Cache-Status: Origin;hit", "X-A: 1"])
    CacheStatus("Etagere", forwarded: .varyMiss).append(to: &fields)
    #expect(fields[text: "Cache-Status"] == "Origin;hit, Etagere;fwd=vary-miss")
    var full = HTTPFields((0..<65_533).map { HTTPField(name: .server, value: "\($0)") })
    for _ in 0..<3 { CacheStatus("c").append(to: &full) }
    #expect(full.count < 65_535)
  }

  @Test("every reason of RFC 9211 has a case")
  func reasons() {
    #expect(
      Set(ForwardReason.allCases.map(\.rawValue)) == [
        "bypass", "method", "uri-miss", "vary-miss", "miss", "request", "stale", "partial",
      ])
  }

  @Test("tags are read from Cache-Tag with commas and from Surrogate-Key with spaces")
  func tags() {
    let tags = CacheTags(HTTPFields(lines: ["Cache-Tag: a, b c ,,", "cache-tag: d", "Surrogate-Key: e  f\tg", "X-Tag: h"]))
    #expect(tags.names == ["a", "b c", "d", "e", "f", "g"])
    #expect(tags.contains("a") && !tags.contains("A"))
    #expect(CacheTags(HTTPFields()).names.isEmpty)
  }
}
