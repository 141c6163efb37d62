#if Tool
import Etagere

/// What the process says at its end. Where curl has a number for it, it is curl's.
enum ExitStatus: Int32, CaseIterable {
  case success = 0
  case unsupportedScheme = 1
  case other = 2
  case invalidURL = 3
  case hostNotFound = 6
  case cannotConnect = 7
  case malformedResponse = 8
  case truncated = 18
  case httpStatus = 22
  case cannotWriteOutput = 23
  case timedOut = 28
  case cannotReadFile = 37
  case redirects = 47
  case connectionLost = 56
  case tls = 60
  case tooLarge = 63
  case usage = 64
  case notCached = 80
  case cacheUnusable = 81
  case damagedEntries = 82
  case demoFailed = 83
  case noPicture = 84

  init(_ error: CacheError) {
    self =
      switch error.code {
      case .unsupportedScheme: .unsupportedScheme
      case .invalidURL: .invalidURL
      case .hostNotFound: .hostNotFound
      case .connectionRefused, .offline: .cannotConnect
      case .malformedResponse: .malformedResponse
      case .truncatedBody: .truncated
      case .unacceptableStatus: .httpStatus
      case .timedOut: .timedOut
      case .tooManyRedirects, .redirectRefused: .redirects
      case .connectionLost: .connectionLost
      case .tlsFailure: .tls
      case .bodyTooLarge: .tooLarge
      case .notCached: .notCached
      case .fileSystem: .cannotReadFile
      case .decodingFailed, .encodingFailed, .imageLimitExceeded, .unsupported: .noPicture
      default: .other
      }
  }

  private var meaning: String {
    switch self {
    case .success: "everything was done"
    case .unsupportedScheme: "a URL's scheme is not http, https, file or data"
    case .other: "something that has no number of its own"
    case .invalidURL: "a URL is none"
    case .hostNotFound: "a host's name does not resolve"
    case .cannotConnect: "nobody answers there: refused, or no network"
    case .malformedResponse: "what came is not HTTP"
    case .truncated: "a body ended early"
    case .httpStatus: "the server answered with a status that is no success"
    case .cannotWriteOutput: "the output file or folder can't be written"
    case .timedOut: "not in time"
    case .cannotReadFile: "a local file can't be read"
    case .redirects: "too many redirects, or one that leads where none may lead"
    case .connectionLost: "the connection broke"
    case .tls: "no trusted connection"
    case .tooLarge: "a body is larger than allowed"
    case .usage: "the command line is wrong"
    case .notCached: "not in the cache, and only the cache was asked"
    case .cacheUnusable: "the cache folder can't be used"
    case .damagedEntries: "cache verify found damaged entries"
    case .demoFailed: "a check of the demo failed"
    case .noPicture: "no picture, a damaged one, one beyond the limits, or no engine for it here"
    }
  }

  /// For `--help`.
  static var table: String {
    let rows = allCases.map { status in
      let number = String(status.rawValue)
      return "  \(String(repeating: " ", count: 2 - min(2, number.count)))\(number)  \(status.meaning)"
    }
    return "Exit status (of several failures, the first one's):\n" + rows.joined(separator: "\n")
  }
}

/// Ends the process with a status, after everything has been said.
struct ToolFailure: Error {
  var status: ExitStatus
}
#endif
