import Etagere
import Foundation

/// Etagere as an app gets it: the standard configuration, and the default policy.
final class EtagereLoader: LoaderAdapter {
  private let manager: ResourceManager

  init(folder: URL) async throws {
    manager = ResourceManager(try .standard(folder: folder))
  }

  func load(_ url: URL, fields: [String: String]) async throws -> LoadedResponse {
    var request = ResourceRequest(url)
    for (name, value) in fields {
      if let name = HTTPField.Name(name) { request.headerFields[name] = value }
    }
    let resource = try await manager.load(request)
    return LoadedResponse(status: resource.response.status.code, body: resource.data)
  }

  func close() async { await manager.close() }
}
