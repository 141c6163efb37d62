#if Tool
import Etagere
import Foundation

/// The result of one load, as a line or as JSON.
struct LoadReport: Encodable {
  var url: String
  var source: String?
  var validation: String?
  var status: Int?
  var bytes: Int?
  var bytesOnWire: Int64?
  var ageSeconds: Double?
  var isStale: Bool?
  /// The error because of which a stale response was served.
  var fallbackReason: String?
  var milliseconds: Double
  var file: String?
  /// The image that was made.
  var image: ImageReport?
  var error: Failure?

  struct Failure: Encodable {
    var code: String
    var message: String
    var exitStatus: Int32

    init(_ error: CacheError, message: String, _ exit: ExitStatus) {
      code = Text.kebabCase(error.code.rawValue)
      self.message = message
      exitStatus = exit.rawValue
    }
  }

  init<Value>(_ url: String, _ resource: Resource<Value>, bytes: Int, took: Duration) {
    self.url = url
    self.bytes = bytes
    milliseconds = Text.milliseconds(took)
    source = Text.kebabCase(resource.source.rawValue)
    validation = Text.kebabCase(resource.validation.rawValue)
    status = resource.source == .revalidated ? 304 : resource.response.status.code
    bytesOnWire = resource.bytesOnWire
    ageSeconds = resource.age / .seconds(1)
    isStale = resource.isStale
    fallbackReason = resource.fallbackReason?.reason
  }

  init(_ url: String, _ error: CacheError, took: Duration) {
    self.url = url
    milliseconds = Text.milliseconds(took)
    status = error.status
    fail(error, ExitStatus(error))
  }

  mutating func fail(_ error: CacheError, _ exit: ExitStatus) {
    self.error = Failure(error, message: error.description, exit)
  }

  /// The source, status, received bytes, time and URL, then the image that was made, and why the response is stale.
  var line: String {
    var columns = [
      Text.left(source ?? "", 14), Text.right(status.map(String.init) ?? "-", 3), Text.right(Text.bytes(bytesOnWire ?? 0), 10),
      Text.right(Text.time(milliseconds) + " ms", 11), url,
    ]
    if let image { columns.append("(\(image.brief), \(Text.bytes(Int64(bytes ?? 0))))") }
    if let fallbackReason, let ageSeconds {
      columns.append("(stale, \(Text.seconds(.seconds(ageSeconds))) old: \(fallbackReason))")
    }
    return columns.joined(separator: "  ")
  }
}
#endif
