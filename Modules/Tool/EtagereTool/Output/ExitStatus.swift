#if Demo
import Etagere
import Foundation

/// The exit status of the process: 0, 1, or a value of `sysexits.h`.
///
/// curl's statuses below 64, such as 6 for an unknown host or 22 for an HTTP error, do not occur.
enum ExitStatus: Int32, CaseIterable {
  case success = 0
  case notCached = 1
  case usage = 64
  case dataError = 65
  case noInput = 66
  case noHost = 68
  case unavailable = 69
  case software = 70
  case cannotCreate = 73
  case ioError = 74
  case temporaryFailure = 75
  case protocolError = 76
  case noPermission = 77

  /// The status of a load that has failed.
  init(_ error: CacheError) {
    self =
      switch error.code {
      case .invalidURL, .unsupportedScheme: .usage
      case .bodyTooLarge, .entryTooLarge, .damagedEntry, .decodingFailed, .encodingFailed, .imageLimitExceeded: .dataError
      case .fileSystem: .noInput
      case .hostNotFound: .noHost
      case .connectionRefused, .proxyFailure, .noDownloader, .unsupported: .unavailable
      case .unacceptableStatus: Self(httpStatus: error.status)
      case .diskFull, .readOnly: .ioError
      case .offline, .timedOut, .connectionLost, .truncatedBody, .bodyInterrupted, .revalidationFailed, .retryLater, .overloaded:
        .temporaryFailure
      case .malformedResponse, .damagedContentCoding, .tooManyRedirects, .tlsFailure: .protocolError
      case .redirectRefused, .addressRefused, .networkRestricted, .refused: .noPermission
      case .notCached: .notCached
      default: .software
      }
  }

  /// The status of a response that is not accepted. A response that may be different later is a temporary failure.
  private init(httpStatus: Int?) {
    self =
      switch httpStatus {
      case 401, 403, 407, 451: .noPermission
      case 408, 425, 429, 500, 502, 503, 504: .temporaryFailure
      default: .unavailable
      }
  }

  /// The name in `sysexits.h`, and the meaning in this tool.
  private var meaning: (name: String, text: String) {
    switch self {
    case .success: ("", "success")
    case .notCached: ("", "not in the cache, and the network was not used")
    case .usage: ("EX_USAGE", "invalid command line or URL")
    case .dataError: ("EX_DATAERR", "invalid image, list or cache entry, oversized body")
    case .noInput: ("EX_NOINPUT", "cannot read a local file")
    case .noHost: ("EX_NOHOST", "unknown host name")
    case .unavailable: ("EX_UNAVAILABLE", "connection refused, HTTP 404, no image engine")
    case .software: ("EX_SOFTWARE", "internal error, or a failed check of the demo")
    case .cannotCreate: ("EX_CANTCREAT", "cannot write an output file or folder")
    case .ioError: ("EX_IOERR", "cannot use the cache folder or standard output")
    case .temporaryFailure: ("EX_TEMPFAIL", "try again later: timeout, lost connection, HTTP 503")
    case .protocolError: ("EX_PROTOCOL", "invalid HTTP or TLS, too many redirects")
    case .noPermission: ("EX_NOPERM", "HTTP 401 or 403, refused redirect")
    }
  }

  /// The table for `etagere-cli --help`, which fits into 80 columns.
  static var table: String {
    let rows = allCases.map { status in
      "  \(Text.right("\(status.rawValue)", 2))  \(Text.left(status.meaning.name, 14))  \(status.meaning.text)"
    }
    return "Exit status (if several URLs fail, that of the first one):\n" + rows.joined(separator: "\n")
  }
}

/// The end of the process with a status, after the failure was reported.
struct ToolFailure: Error {
  var status: ExitStatus
}

/// The reason why a file operation of Foundation failed, in the system's words if there are any.
struct FileReason: CustomStringConvertible {
  let description: String

  init(_ error: any Error) { description = Self.system(error) ?? Self.cocoa(error) ?? error.localizedDescription }

  private static func system(_ error: any Error) -> String? {
    let error = error as NSError
    if error.domain == NSPOSIXErrorDomain { return String(cString: strerror(Int32(error.code))) }
    return (error.userInfo[NSUnderlyingErrorKey] as? any Error).flatMap(system)
  }

  private static func cocoa(_ error: any Error) -> String? {
    switch (error as? CocoaError)?.code {
    case .fileReadNoPermission, .fileWriteNoPermission: "Permission denied"
    case .fileWriteOutOfSpace: "No space left on device"
    case .fileNoSuchFile, .fileReadNoSuchFile: "No such file or directory"
    case .fileWriteFileExists: "File exists"
    case .fileWriteVolumeReadOnly: "Read-only file system"
    default: nil
    }
  }
}
#endif
