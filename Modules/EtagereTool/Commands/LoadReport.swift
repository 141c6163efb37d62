#if Tool
import Etagere
import Foundation

/// What is told about one resource, in a line or in JSON.
struct LoadReport: Encodable {
  var url: String
  var source: String?
  var validation: String?
  var status: Int?
  var bytes: Int?
  var bytesOnWire: Int64?
  var ageSeconds: Double?
  var isStale: Bool?
  var milliseconds: Double
  var file: String?
  /// The picture that was made.
  var image: ImageReport?
  var error: Failure?

  struct Failure: Encodable {
    var code: String
    var message: String
    var exitStatus: Int32
  }

  init(_ url: String, _ result: Result<Resource<Data>, CacheError>, took: Duration) {
    self.url = url
    milliseconds = Text.milliseconds(took)
    switch result {
    case .success(let resource):
      source = resource.source.rawValue
      validation = resource.validation.rawValue
      status = resource.source == .revalidated ? 304 : resource.response.status.code
      bytes = resource.data.count
      bytesOnWire = resource.bytesOnWire
      ageSeconds = resource.age / .seconds(1)
      isStale = resource.isStale
    case .failure(let error):
      status = error.status
      fail(error, ExitStatus(error))
    }
  }

  mutating func fail(_ error: CacheError, _ exit: ExitStatus) {
    self.error = Failure(code: error.code.rawValue, message: error.description, exitStatus: exit.rawValue)
  }

  /// source, status, bytes on the wire, time, URL; the picture that was made, and what is worth a remark.
  var line: String {
    var columns = [
      Text.left(source ?? "", 13), Text.right(status.map(String.init) ?? "-", 3), Text.right(Text.bytes(bytesOnWire ?? 0), 9),
      Text.right(Text.time(milliseconds) + " ms", 11), url,
    ]
    if let image { columns.append("(\(image.brief), \(Text.bytes(Int64(bytes ?? 0))))") }
    if validation == RevalidationOutcome.failed.rawValue, let ageSeconds {
      columns.append("(not validated: nobody answered; \(Text.seconds(.seconds(ageSeconds))) old)")
    }
    return columns.joined(separator: "  ")
  }
}
#endif
