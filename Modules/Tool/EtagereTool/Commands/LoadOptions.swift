#if Tool
import ArgumentParser
import CommandIO
import Etagere
import Foundation
import HTTPTypes

/// The options of a load, which `get`, `prefetch` and `inspect` share.
struct LoadOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "When to use the cache and when the network.",
      discussion: """
        standard: serve a fresh response, revalidate a stale one.
        cache-first: serve a cached response, even if it is stale.
        revalidate: revalidate a cached response, even if it is fresh.
        reload: load without the cache, and store the response.
        cache-only: never use the network.
        memory-else-reload: serve from memory, or else reload.
        stale-while-revalidate: serve a stale response and revalidate it.
        """, valueName: "policy"))
  var policy = PolicyName.standard

  @Option(
    name: .customLong("header"),
    help: ArgumentHelp("Send this header field. Can be repeated.", valueName: "'Name: value'"))
  var headers: [String] = []

  @Option(help: ArgumentHelp("The maximum time of one load, including redirects and retries.", valueName: "seconds"))
  var timeout: Double?

  @Option(help: ArgumentHelp("The number of loads that run at the same time.", valueName: "number"))
  var parallel = 6

  func validate() throws {
    if let timeout, !(timeout > 0 && timeout <= 86_400) {
      throw ValidationError("--timeout takes a number of seconds above 0 and up to 86400")
    }
    guard (1...256).contains(parallel) else { throw ValidationError("--parallel takes a number from 1 to 256") }
    _ = try fields()
  }

  var options: RequestOptions {
    RequestOptions {
      $0.policy = policy.policy
      $0.timeout = timeout.map { .seconds($0) }
    }
  }

  func fields() throws -> HTTPFields {
    var fields = HTTPFields()
    for header in headers {
      let parts = header.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      let value = parts.count == 2 ? parts[1].trimmingCharacters(in: .whitespaces) : ""
      guard parts.count == 2, let name = HTTPField.Name(String(parts[0])), HTTPField.isValidValue(value) else {
        throw ValidationError("--header takes 'Name: value', not '\(header)'")
      }
      fields.append(HTTPField(name: name, value: value))
    }
    return fields
  }

  /// Returns the request for a URL, or the error of a text that is not a URL. The other URLs are loaded all the same.
  func request(_ text: String) -> Result<ResourceRequest, CacheError> {
    do throws(CacheError) {
      let request = try ResourceRequest(typed: text, headerFields: (try? fields()) ?? [:], options: options)
      // In `user:password@host`, the user name is a scheme for Foundation, and the error of the load would name the password.
      guard let scheme = request.url.scheme?.lowercased(), !["http", "https", "file", "data"].contains(scheme) else {
        return .success(request)
      }
      throw CacheError(
        .unsupportedScheme, reason: "unsupported URL scheme '\(scheme)'", url: UserInformation.removed(fromURL: text))
    } catch {
      return .failure(error)
    }
  }
}

extension ResourceRequest {
  /// Creates the request for a URL as it was typed. An error names that text, not as a URL would spell it, without user
  /// information.
  init(
    typed text: String, headerFields: HTTPFields = [:], options: RequestOptions = RequestOptions()
  ) throws(CacheError) {
    do throws(CacheError) {
      try self.init(text, headerFields: headerFields, options: options)
    } catch {
      var error = error
      error.url = text.isEmpty ? "''" : UserInformation.removed(fromURL: text)
      throw error
    }
  }
}
#endif
