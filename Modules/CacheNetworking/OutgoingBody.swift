internal import Foundation

/// What is sent with a request: nothing, a few bytes, or a file, so that memory does not grow with the body.
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
