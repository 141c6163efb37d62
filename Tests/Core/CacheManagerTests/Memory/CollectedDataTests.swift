import Testing

@testable import CacheManager

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("The bytes of a collected body")
struct CollectedDataTests {
  @Test(
    "all chunks are collected, whatever length was announced",
    arguments: [nil, 0, 1, 100, 255 << 10, 256 << 10, 300 << 10, 1 << 20, 3 << 30], [1, 63, 64, 65_536, 1_100_000])
  func collecting(length: Int64?, firstChunk: Int) {
    let chunks = [firstChunk, 1, 100_000, 65_536, 300_000].enumerated().map { Data(repeating: UInt8($0), count: $1) }
    var data = Data()
    for chunk in chunks { data.collect(chunk, of: length) }
    #expect(data == chunks.reduce(Data(), +))
  }

  @Test("the chunks of a body of the announced length are collected in place")
  func place() {
    var data = Data()
    data.collect(Data(repeating: 1, count: 100_000), of: 1_000_000)
    let start = data.withUnsafeBytes { $0.baseAddress }
    for _ in 0..<9 { data.collect(Data(repeating: 2, count: 100_000), of: 1_000_000) }
    #expect(data.count == 1_000_000)
    #expect(data.withUnsafeBytes { $0.baseAddress } == start)
  }

  @Test("a copy of the bytes stays as it was when more bytes are collected")
  func copies() {
    var data = Data()
    data.collect(Data(repeating: 1, count: 100_000), of: 400_000)
    let copy = data
    data.collect(Data(repeating: 2, count: 300_000), of: 400_000)
    #expect(copy == Data(repeating: 1, count: 100_000) && data.count == 400_000)
    data = Data()
    #expect(copy.last == 1)
  }

  @Test("a first chunk may be larger than any length for which memory is reserved at once")
  func largeChunk() {
    let chunk = Data(repeating: 7, count: 65 << 20)
    var data = Data()
    data.collect(chunk, of: 70 << 20)
    data.collect(Data(repeating: 8, count: 5 << 20), of: 70 << 20)
    #expect(data.count == 70 << 20 && data.prefix(chunk.count) == chunk && data.last == 8)
  }
}
