internal import CacheCore
internal import Dispatch
internal import Foundation
internal import HTTPTypes

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

extension SessionDownloader {
  /// Returns the platform's task for a request, in the engine's session. A file is sent without copying it.
  static func task(for plan: TransferPlan, in engine: SessionEngine) -> URLSessionDataTask {
    let request = urlRequest(plan, configuration: engine.configuration)
    if case .file(let file) = plan.body { return engine.session.uploadTask(with: request, fromFile: file.url) }
    return engine.session.dataTask(with: request)
  }

  /// Converts the request for `URLSession`.
  static func urlRequest(_ plan: TransferPlan, configuration: Configuration) -> URLRequest {
    var request = URLRequest(url: plan.url)
    request.httpMethod = plan.head.method.rawValue
    request.cachePolicy = .reloadIgnoringLocalCacheData
    request.httpShouldHandleCookies = configuration.handlesCookies
    // Set by the property, because Linux ignores the initializer's parameter. Our exact time-out fires first. This one is the
    // fallback.
    request.timeoutInterval = TimeInterval(Configuration.wholeSeconds(plan.idleTimeout) + Configuration.platformGrace)
    #if !canImport(FoundationNetworking)
    request.allowsCellularAccess = plan.networkAccess.contains(.cellular)
    request.allowsExpensiveNetworkAccess = plan.networkAccess.contains(.expensive)
    request.allowsConstrainedNetworkAccess = plan.networkAccess.contains(.constrained)
    #endif
    request.setFields(plan.head.headerFields)
    if !plan.body.isEmpty, request.value(forHTTPHeaderField: "Content-Type") == nil {
      // Without the field, Foundation would send the type of a form (RFC 9110 §8.3: unknown bytes are octets).
      request.setValue("application/octet-stream", forHTTPHeaderField: "Content-Type")
    }
    if case .data(let data) = plan.body, !data.isEmpty { request.httpBody = data }
    return request
  }
}

extension URLRequest {
  /// The framing fields, which the platform sets itself.
  private static let framing: Set<HTTPField.Name> = [.contentLength, .transferEncoding]

  /// Sets all fields. A repeated field becomes one with a list (RFC 9110 §5.3).
  fileprivate mutating func setFields(_ fields: HTTPFields) {
    for name in Set(fields.map(\.name)) where !Self.framing.contains(name) {
      setValue(fields[name], forHTTPHeaderField: name.rawName)
    }
  }
}

/// One request and everything that is decided before its transfer is created.
struct TransferPlan: Sendable {
  /// The method, URL and fields, including those that the configuration adds.
  var head: HTTPRequest
  var url: URL
  var body: OutgoingBody
  var idleTimeout: Duration
  var networkAccess: NetworkAccess
  /// The proxy of the request, or `nil` if there is none or it is unknown.
  var proxy: ProxySettings.Proxy?
  /// The largest body, in bytes, that the reader gets together with the head, or 0 to wake it at the head.
  var collectUpTo = 0
  /// Receives the interim responses, or `nil` to drop them.
  var onInterimResponse: (@Sendable (HTTPResponse) -> Void)?

  /// Whether a proxy's response to CONNECT precedes the server's. Foundation on Linux reports both.
  var isTunnelled: Bool {
    #if canImport(FoundationNetworking)
    guard let proxy, proxy.kind != .socks5 else { return false }
    return url.scheme?.lowercased() == "https"
    #else
    return false
    #endif
  }
}

/// Collects a request body from its stream in a form that `URLSession` can send: memory for a small body, a file for a larger
/// one.
struct BodySpooling {
  /// The maximum number of bytes of a body that stay in memory.
  var memoryLimit: Int
  /// The folder for the files.
  var folder: URL

  /// Reads the body to its end. The file is removed if this throws.
  func collect(_ body: ResourceBody) async throws(CacheError) -> OutgoingBody {
    if let data = body.data { return .data(data) }
    var start = Data()
    var file: SpoolFile?
    while let chunk = try await body.source.next() {
      if let file {
        try await append(chunk, to: file, of: body)
      } else if start.count + chunk.count <= memoryLimit {
        start.append(chunk)
      } else {
        let new: SpoolFile
        do {
          new = try SpoolFile(in: folder)
        } catch {
          body.source.cancel()
          throw error
        }
        try await append(start, to: new, of: body)
        try await append(chunk, to: new, of: body)
        start = Data()
        file = new
      }
    }
    return file.map { .file($0) } ?? .data(start)
  }

  private func append(_ data: Data, to file: SpoolFile, of body: ResourceBody) async throws(CacheError) {
    do {
      try await file.append(data)
    } catch {
      body.source.cancel()
      throw error
    }
  }
}

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

/// A file for a request body that is to be sent, readable only by its owner. It is removed with this object, except after a
/// crash.
///
/// Foundation opens the file by name, so it cannot be unlinked while the transfer runs.
final class SpoolFile: Sendable {
  /// The location of the file.
  let url: URL

  private let descriptor: Int32
  /// The queue for writes, which block and must not run on the cooperative pool.
  private let queue = DispatchQueue(label: "Etagere.SpoolFile")

  /// Creates an empty file.
  ///
  /// - Parameter folder: An existing folder.
  init(in folder: URL) throws(CacheError) {
    url = folder.appendingPathComponent("etagere-upload-\(UUID().uuidString)")
    descriptor = open(url.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Self.error("cannot create", errno, url) }
  }

  deinit {
    close(descriptor)
    unlink(url.path)
  }

  /// Appends bytes.
  func append(_ data: Data) async throws(CacheError) {
    let number = await withResumption { (continuation: Resumption<Int32>) in
      // Captures only the descriptor: otherwise this thread could release the file last, after the caller.
      queue.async { [descriptor] in continuation.resume(returning: Self.write(data, to: descriptor)) }
    }
    guard number == 0 else { throw Self.error("cannot write", number, url) }
  }

  /// Writes all bytes. Returns 0 or the error number.
  private static func write(_ data: Data, to descriptor: Int32) -> Int32 {
    data.withUnsafeBytes { bytes in
      var rest = bytes[...]
      while !rest.isEmpty {
        #if canImport(Darwin)
        let count = Darwin.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
        #elseif canImport(Glibc)
        let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
        #elseif canImport(Musl)
        let count = Musl.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
        #endif
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return count < 0 ? errno : EIO }
        rest = rest.dropFirst(count)
      }
      return 0
    }
  }

  private static func error(_ what: String, _ number: Int32, _ url: URL) -> CacheError {
    let code: CacheError.Code = number == ENOSPC || number == EDQUOT ? .diskFull : .fileSystem
    let text = String(cString: strerror(number))
    return CacheError(
      code, reason: "\(what) the file for a request body: \(text)", path: url.path, errno: number)
  }
}
