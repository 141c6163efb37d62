#if Demo
import Etagere
import Foundation
import LoopbackOrigin

/// One pass over all images: the requests to the origin, and the sources of the thumbnails.
struct ImageDemoPass: Encodable, Sendable {
  var name: String
  var requests = 0
  var notModified = 0
  var bodyBytes = 0
  /// The number of thumbnails that were made from the bytes of the original.
  var transformed = 0
  /// The number of thumbnails that were read from disk, without their original.
  var disk = 0
  /// The number of thumbnails that were in memory.
  var memory = 0
  var milliseconds = 0.0

  /// The result of loading the thumbnail of one image.
  struct Shown: Sendable {
    var index: Int
    var outcome: Result<Resource<DecodedImage>, CacheError>
  }

  /// Loads the thumbnail of every image.
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
      case .transformed, .original: pass.transformed += 1
      case .disk: pass.disk += 1
      case .memory: pass.memory += 1
      }
    }
    return (pass, shown)
  }

  /// The heading of the table, which fits into 80 columns.
  static var header: String {
    let columns = ["requests", "304s", "body bytes", "made", "disk", "memory", "ms"]
    return Text.row("thumbnails", nameWidth, columns, widths)
  }

  private static let nameWidth = 26
  private static let widths = [9, 5, 12, 6, 6, 8, 8]

  var line: String {
    let cells = [
      "\(requests)", "\(notModified)", "\(bodyBytes)", "\(transformed)", "\(disk)", "\(memory)", Text.time(milliseconds),
    ]
    return Text.row(name, Self.nameWidth, cells, Self.widths)
  }
}

/// The expected result of a pass.
struct ImageDemoExpectation {
  var requests = 0
  var notModified = 0
  var bodyBytes = 0
  var transformed = 0
  var disk = 0
  var memory = 0
  /// The expected outcome of revalidating the image with this index.
  var validation: @Sendable (Int) -> RevalidationOutcome = { _ in .notAttempted }

  /// Returns the differences between a pass and this expectation, as sentences.
  func differences(from pass: ImageDemoPass, _ shown: [ImageDemoPass.Shown]) -> [String] {
    let counts = [
      ("requests", pass.requests, requests), ("304s", pass.notModified, notModified), ("body bytes", pass.bodyBytes, bodyBytes),
      ("thumbnails made", pass.transformed, transformed), ("thumbnails from disk", pass.disk, disk),
      ("thumbnails from memory", pass.memory, memory),
    ]
    var wrong = counts.filter { $0.1 != $0.2 }.map { "\(pass.name): \($0.1) \($0.0), expected \($0.2)" }
    for one in shown {
      switch one.outcome {
      case .failure(let error): wrong.append("\(pass.name): \(error)")
      case .success(let resource):
        let expected = validation(one.index)
        if resource.validation != expected {
          wrong.append("\(pass.name): image \(one.index + 1) has validation \(resource.validation), expected \(expected)")
        }
      }
    }
    return wrong
  }
}
#endif
