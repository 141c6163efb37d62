import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A cache as apps write it by hand: a file for each URL, used whenever it exists, and not written atomically.
///
/// The control of the comparison. It shows that the scenarios find the defects that they look for.
final class FileLoader: LoaderAdapter {
  private let folder: URL
  /// The pause in the middle of file 0. File `n` has `n + 1` times this pause, so that some files are always half written until
  /// the last one is complete. Without it, a kill would rarely hit a write.
  private let pause: Duration?
  private let session = URLSession(configuration: .ephemeral)

  init(folder: URL) async throws { (self.folder, pause) = (folder, nil) }

  init(folder: URL, pause: Duration?) { (self.folder, self.pause) = (folder, pause) }

  func load(_ url: URL, fields: [String: String]) async throws -> LoadedResponse {
    let file = folder.appending(path: url.path.replacingOccurrences(of: "/", with: "_"))
    if let body = try? Data(contentsOf: file) { return LoadedResponse(body: body) }
    var request = URLRequest(url: url)
    for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
    let (body, response) = try await session.data(for: request)
    if let pause {
      try? body.prefix(body.count / 2).write(to: file)
      try? await Task.sleep(for: pause * ((Int(url.lastPathComponent) ?? 0) + 1))
    }
    try? body.write(to: file)
    return LoadedResponse(status: (response as? HTTPURLResponse)?.statusCode, body: body)
  }

  func close() async {}
}
