#if Tool
import Foundation

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
