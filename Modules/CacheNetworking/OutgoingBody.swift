internal import Foundation

/// The body sent with a request: none, data, or a file for a body that is too large for memory.
enum OutgoingBody: Sendable {
  case none
  case data(Data)
  case file(SpoolFile)

  var isEmpty: Bool {
    switch self {
    case .none: true
    case .data(let data): data.isEmpty
    case .file: false
    }
  }
}
