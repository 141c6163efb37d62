#if Origin
import Foundation
import HTTPTypes
import LoopbackOrigin

/// One scenario with one loader: an origin, and a folder for the cache.
struct Trial {
  let kind: LoaderKind
  let folder: URL
  let origin: OriginServer

  /// Runs a scenario. A crash, a hang, and a load that fails against the expectation are findings.
  static func run(_ scenario: Scenario, with kind: LoaderKind) async throws -> Finding {
    let folder = FileManager.default.temporaryDirectory
      .appending(path: "etagere-comparison-\(UUID().uuidString)", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let origin = try await OriginServer.start()
    let trial = Trial(kind: kind, folder: folder, origin: origin)
    let finding: Finding
    do {
      finding = try await trial.run(scenario)
    } catch let failure as LoaderFailure {
      finding = .fails("\(failure)")
    }
    await origin.stop()
    return finding
  }

  private func run(_ scenario: Scenario) async throws -> Finding {
    switch scenario {
    case .unchanged: try unchanged(restarts: false)
    case .changed: try changed()
    case .vary: try vary()
    case .offline: try await offline()
    case .cut: try cut()
    case .flip: try flip()
    case .kill: try killed()
    case .full: try full()
    case .processes: try processes()
    case .restart: try unchanged(restarts: true)
    case .fresh: try fresh()
    }
  }

  // MARK: Shared by the scenarios

  func open(fileSizeLimit: Int? = nil, slowsWrites: Bool = false) throws -> LoaderProcess {
    try LoaderProcess(kind, folder: folder, fileSizeLimit: fileSizeLimit, slowsWrites: slowsWrites)
  }

  /// Ends the process after its writes and starts another one on the same folder.
  func reopen(_ loader: LoaderProcess) throws -> LoaderProcess {
    try loader.end()
    return try open()
  }

  /// Sets the image of a path.
  func serve(
    _ path: String, _ image: Data, etag: OriginETag?, cacheControl: String, vary: String? = nil,
    delivery: OriginDelivery = OriginDelivery()
  ) {
    origin.setRoute(path, Route(answer(image, etag: etag, cacheControl: cacheControl, vary: vary, delivery: delivery)))
  }

  func answer(
    _ image: Data, etag: OriginETag?, cacheControl: String, vary: String? = nil, delivery: OriginDelivery = OriginDelivery()
  ) -> OriginResponse {
    var fields: HTTPFields = [.cacheControl: cacheControl]
    fields[.vary] = vary
    return OriginResponse(
      image, contentType: "image/png", etag: etag, fields: fields, acceptsRanges: true, delivery: delivery)
  }

  /// Whether the loader gave exactly this image.
  func gave(_ reply: Reply, _ image: Data) -> Bool { reply.error == nil && reply.body == image }

  /// Loads an image that the scenario needs.
  ///
  /// - Returns: The finding that ends the scenario if the load fails.
  func prepare(_ loader: LoaderProcess, _ path: String, _ image: Data, fields: [String: String] = [:]) throws -> Finding? {
    let reply = try loader.load(origin.url(path), fields: fields)
    return gave(reply, image) ? nil : .fails("the first load fails")
  }
}
#endif
