#if Tool
import Etagere
import Foundation
import LoopbackOrigin

/// One pass over all pictures: what was asked of the origin, where the answers and the thumbnails came from, and whether they
/// show what the origin has now.
struct ImageDemoPass: Encodable, Sendable {
  var name: String
  var requests = 0
  var notModified = 0
  var bodyBytes = 0
  /// Thumbnails made of the original's bytes.
  var made = 0
  /// Thumbnails read from the store, without their original.
  var stored = 0
  /// Thumbnails that were in memory.
  var kept = 0
  var milliseconds = 0.0

  /// What a thumbnail was, and where it came from.
  struct Shown: Sendable {
    var index: Int
    var outcome: Result<Resource<DecodedImage>, CacheError>
  }

  /// Loads a transform of every picture.
  static func run(
    _ name: String, _ transform: ResourceTransform<DecodedImage>, of items: [ImageDemoContent.Item],
    with manager: ResourceManager,
    from origin: OriginServer
  ) async -> (pass: Self, shown: [Shown]) {
    origin.resetCounters()
    let clock = SystemClock()
    let start = clock.uptime
    let shown = await BoundedLoads(parallel: 6).run(Array(items.indices)) { index in
      do throws(CacheError) {
        return Shown(index: index, outcome: .success(try await manager.load(origin.url(items[index].path), as: transform)))
      } catch {
        return Shown(index: index, outcome: .failure(error))
      }
    }
    var pass = Self(name: name)
    pass.milliseconds = Text.milliseconds(clock.uptime - start)
    (pass.requests, pass.notModified) = (origin.counters.requests, origin.counters.notModified)
    pass.bodyBytes = origin.counters.bodyBytesSent
    for resource in shown.compactMap({ try? $0.outcome.get() }) {
      switch resource.valueOrigin {
      case .transformed, .original: pass.made += 1
      case .disk: pass.stored += 1
      case .memory: pass.kept += 1
      }
    }
    return (pass, shown)
  }

  static var header: String {
    let columns = ["requests", "304s", "body bytes", "made", "stored", "in memory", "ms"]
    return Text.left("pass", 44) + zip(columns, widths).map { Text.right($0, $1) }.joined()
  }

  private static let widths = [10, 6, 12, 6, 8, 11, 9]

  var line: String {
    let cells = ["\(requests)", "\(notModified)", "\(bodyBytes)", "\(made)", "\(stored)", "\(kept)", Text.time(milliseconds)]
    return Text.left(name, 44) + zip(cells, Self.widths).map { Text.right($0, $1) }.joined()
  }
}

/// What must come of a pass.
struct ImageDemoExpectation {
  var requests = 0
  var notModified = 0
  var bodyBytes = 0
  var made = 0
  var stored = 0
  var kept = 0
  /// What each load must say about the origin's word.
  var validation: @Sendable (Int) -> RevalidationOutcome = { _ in .notAttempted }

  /// - Returns: what is not as it must be, in words.
  func differences(from pass: ImageDemoPass, _ shown: [ImageDemoPass.Shown]) -> [String] {
    let counts = [
      ("requests", pass.requests, requests), ("304s", pass.notModified, notModified), ("body bytes", pass.bodyBytes, bodyBytes),
      ("thumbnails made", pass.made, made), ("thumbnails from the store", pass.stored, stored),
      ("thumbnails from memory", pass.kept, kept),
    ]
    var wrong = counts.filter { $0.1 != $0.2 }.map { "\(pass.name): \($0.1) \($0.0), not \($0.2)" }
    for one in shown {
      switch one.outcome {
      case .failure(let error): wrong.append("\(pass.name): \(error)")
      case .success(let resource):
        let expected = validation(one.index)
        if resource.validation != expected {
          wrong.append("\(pass.name): picture \(one.index + 1) was validated as \(resource.validation), not \(expected)")
        }
      }
    }
    return wrong
  }
}
#endif
