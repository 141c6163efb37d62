import CacheCore
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Transforms")
struct ResourceTransformTests {
  private struct Text: ResourceDecoder {
    var encoding = "utf8"
    var id: ComponentID { ComponentID(Text.self, parameters: encoding) }

    func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> String {
      guard let text = String(validating: data, as: UTF8.self) else { throw CacheError(.decodingFailed, reason: "not UTF-8") }
      return text
    }

    func cost(of value: String) -> Int { value.utf8.count }
  }

  private struct Appending: ResourceProcessor {
    let suffix: String
    var id: ComponentID { ComponentID(Appending.self, parameters: "append(\(suffix))") }

    func process(_ value: String, _ metadata: StoredMetadata) throws(CacheError) -> String { value + suffix }
  }

  @Test("the transform of the original bytes has an empty identity and changes nothing")
  func bytes() async throws {
    let transform = ResourceTransform<Data>.bytes
    #expect(transform.id.isEmpty)
    #expect(try await transform.make(ResourceBody(Data("abc".utf8)), .whole()) == Data("abc".utf8))
    #expect(transform.cost(Data(count: 7)) == 7)
  }

  @Test("a transform is named after its decoder and its processors, in order")
  func names() {
    #expect(ResourceTransform(decoder: Text()).id == "Text#4:utf8")
    #expect(ResourceTransform(decoder: Text(encoding: "latin1")).id == "Text#6:latin1")
    let (a, b) = (Appending(suffix: "a"), Appending(suffix: "b"))
    #expect(
      ResourceTransform(decoder: Text(), processors: [a, b]).id == "Text#4:utf8|Appending#9:append(a)|Appending#9:append(b)")
    #expect(
      ResourceTransform(decoder: Text(), processors: [a, b]).id != ResourceTransform(decoder: Text(), processors: [b, a]).id)
    #expect(ResourceTransform(decoder: Text()).map("upper") { $0.uppercased() }.id == "Text#4:utf8|upper")
  }

  @Test("a transform decodes, then processes in order, and returns the cost of the value")
  func makes() async throws {
    let transform = ResourceTransform(decoder: Text(), processors: [Appending(suffix: "1"), Appending(suffix: "2")]).map("upper")
    {
      $0.uppercased()
    }
    let value = try await transform.make(ResourceBody(Data("abc".utf8)), .whole())
    #expect(value == "ABC12")
    #expect(transform.cost(value) == 5)
  }

  @Test("a transform throws the error of its decoder or of a step")
  func fails() async {
    let transform = ResourceTransform(decoder: Text(), processors: [Appending(suffix: "1")])
    #expect(await failure { _ = try await transform.make(ResourceBody(Data([0xFF])), .whole()) }?.code == .decodingFailed)
    let strict = ResourceTransform(decoder: Text()).map("never") { _ throws(CacheError) in
      throw CacheError(.refused, reason: "no")
    }
    #expect(await failure { _ = try await strict.make(ResourceBody(Data("a".utf8)), .whole()) }?.code == .refused)
  }

  private struct Bytes: ResourceEncoder {
    var mark: String
    var id: ComponentID { ComponentID(Bytes.self, parameters: mark) }

    func encode(_ value: String, _ metadata: StoredMetadata) throws(CacheError) -> Data { Data("\(mark)\(value)".utf8) }
  }

  @Test("an encoder changes the identity of a transform")
  func encoderNames() {
    let plain = ResourceTransform(decoder: Text(), processors: [Appending(suffix: "a")])
    let encoded = ["1", "2"].map {
      ResourceTransform(decoder: Text(), processors: [Appending(suffix: "a")], encoder: Bytes(mark: $0))
    }
    let restored = ResourceTransform(
      decoder: Text(), processors: [Appending(suffix: "a")], encoder: Bytes(mark: "1"), restorer: Text(encoding: "latin1"))
    let stored = plain.stored(as: "utf8") {
      Data($0.utf8)
    } decode: {
      String(decoding: $0, as: UTF8.self)
    }

    #expect(plain.coding == nil)
    #expect(encoded[0].id == "\(plain.id)|=>Bytes#1:1|Text#4:utf8")
    #expect(stored.id == "\(plain.id)|=>utf8")
    #expect(Set([plain.id, encoded[0].id, encoded[1].id, restored.id, stored.id]).count == 5)
  }

  @Test("a value is encoded after all steps and decoded from the encoded bytes")
  func encodes() async throws {
    let transform = ResourceTransform(decoder: Text(), encoder: Bytes(mark: "#")).map("upper") { $0.uppercased() }
    let coding = try #require(transform.coding)

    let value = try await transform.make(ResourceBody(Data("abc".utf8)), .whole())

    #expect(value == "ABC" && transform.id == "Text#4:utf8|upper|=>Bytes#1:#|Text#4:utf8")
    #expect(try coding.encode(value, .whole()) == Data("#ABC".utf8))
    #expect(try coding.decode(Data("#ABC".utf8), .whole()) == "#ABC")
  }

  @Test("transforms with equal first steps have equal stems, whatever their encodings")
  func stems() {
    let short = ResourceTransform(decoder: Text(), processors: [Appending(suffix: "a")])
    let long = ResourceTransform(
      decoder: Text(), processors: [Appending(suffix: "a"), Appending(suffix: "b")], encoder: Bytes(mark: "#"))
    #expect(long.stem(1) == short.id && long.stem(0) == ResourceTransform(decoder: Text()).id)
    #expect(long.stem(2) != long.id)
  }
}
