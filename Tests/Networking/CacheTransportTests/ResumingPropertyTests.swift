import CacheCore
import CacheTesting
import CacheTransport
import HTTPTypes
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Random numbers that are determined by a seed (SplitMix64).
struct SeededNumbers: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

/// A resource that changes between requests, behind an unreliable server. The seed determines its interruptions, errors and wrong
/// ranges. Its entity tags are always correct.
final class UnreliableServer: Sendable {
  private struct State {
    var numbers: SeededNumbers
    var version = 0
    var sizes: [Int]
  }

  private let state: Lock<State>
  private let isTagged: Bool
  private let isWeak: Bool

  init(seed: UInt64) {
    var numbers = SeededNumbers(state: seed)
    isTagged = Int.random(in: 0..<6, using: &numbers) > 0
    isWeak = Int.random(in: 0..<6, using: &numbers) == 0
    let size = Int.random(in: 1...6_000, using: &numbers)
    // Some versions have the same size, so that only the tag distinguishes them.
    let sizes = (0..<4).map { _ in Bool.random(using: &numbers) ? size : Int.random(in: 1...6_000, using: &numbers) }
    state = Lock(State(numbers: numbers, sizes: sizes))
  }

  /// The bytes of a version. Each byte encodes its version and its position.
  func bytes(_ version: Int) -> Data {
    let size = state.withLock { $0.sizes[abs(version) % 4] }
    return Data((0..<size).map { UInt8(truncatingIfNeeded: ($0 % 61) &+ (version % 4) &* 61) })
  }

  func serve(_ request: DownloadRequest) throws(CacheError) -> DownloadResponse {
    let (version, dice, cutting, chunk) = state.withLock { state in
      if Int.random(in: 0..<6, using: &state.numbers) == 0 { state.version += 1 }
      return (
        state.version, Int.random(in: 0..<12, using: &state.numbers), Double.random(in: 0...1.6, using: &state.numbers),
        Int.random(in: 1...2_000, using: &state.numbers)
      )
    }
    if dice == 0 { throw lost }
    if dice == 1 { return .scripted(503) }
    let whole = bytes(version)
    let tag = "\(isWeak ? "W/" : "")\"\(version)\""
    var fields: HTTPFields = [.init("X-Version") ?? .server: "\(version)"]
    if isTagged { fields[.eTag] = tag }
    func cut(_ count: Int) -> Int? { cutting < 1 ? Int(Double(count) * cutting) : nil }
    let asked = request.head.headerFields[.range].flatMap { Int($0.dropFirst(6).dropLast()) }
    let isCondition = request.head.headerFields[.ifRange].map { $0 == tag && !isWeak } ?? true
    // A quarter of the responses ignore `If-Range`, ignore ranges, or begin at a wrong position.
    guard let asked, dice != 2, isCondition || dice == 3 else {
      return .scripted(200, fields, whole, chunk: chunk, cut: cut(whole.count))
    }
    let first = dice == 4 ? max(asked - 1, 0) : asked
    guard first < whole.count else { return .scripted(416, [.contentRange: "bytes */\(whole.count)"]) }
    fields[.contentRange] = "bytes \(first)-\(whole.count - 1)/\(whole.count)"
    return .scripted(206, fields, whole.dropFirst(first), chunk: chunk, cut: cut(whole.count - first))
  }
}

@Suite("Resumption with an unreliable server")
struct ResumingPropertyTests {
  @Test("a body is complete or an error, and never a mixture or a part", arguments: 0..<40)
  func wholeOrError(_ block: UInt64) async throws {
    var (whole, failed, resumed) = (0, 0, 0)
    for seed in block * 50..<(block + 1) * 50 {
      let server = UnreliableServer(seed: seed)
      let probe = RequestProbe { _, request throws(CacheError) in try server.serve(request) }
      let downloader: any Downloader =
        seed % 2 == 0 ? probe.resuming(.eager(8)).retrying(.eager(8)) : probe.retrying(.eager(8)).resuming(.eager(8))
      var data = Data()
      do throws(CacheError) {
        let response = try await downloader.download(request())
        guard response.head.status == .ok else { continue }
        let expected = server.bytes(response.head.headerFields[.init("X-Version") ?? .server].flatMap { Int($0) } ?? -1)
        do throws(CacheError) {
          var iterator = response.body.makeAsyncIterator()
          while let chunk = try await iterator.next() { data.append(chunk) }
          #expect(data == expected, "seed \(seed)")
          whole += 1
          if probe.count > 1 { resumed += 1 }
        } catch {
          #expect(expected.starts(with: data), "seed \(seed)")
          #expect((error.attempt ?? 0) == probe.count, "seed \(seed)")
          failed += 1
        }
      } catch {
        failed += 1
      }
      #expect(probe.count <= 8, "seed \(seed)")
    }
    #expect(whole > 0 && failed > 0 && resumed > 0)
  }
}
