#if Tool
import ArgumentParser
import Etagere
import Foundation
import HTTPTypes

/// How resources are asked for: what `get` and `prefetch` share.
struct LoadRequests: ParsableArguments {
  @Option(help: "Where answers may come from: \(PolicyName.allCases.map(\.rawValue).joined(separator: ", ")).")
  var policy = PolicyName.standard

  @Option(name: .customLong("header"), help: "A field to send, as 'Name: value'; may be given several times.")
  var headers: [String] = []

  @Option(help: "Seconds that one whole load may take.")
  var timeout: Double?

  @Option(help: "How many loads run at the same time.")
  var parallel = 6

  func validate() throws {
    if let timeout, !(timeout > 0 && timeout <= 86_400) { throw ValidationError("--timeout takes seconds between 0 and 86400") }
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

  /// A URL that is none does not keep the others from being loaded.
  func request(_ text: String) -> Result<ResourceRequest, CacheError> {
    do throws(CacheError) {
      return .success(try ResourceRequest(text, headerFields: (try? fields()) ?? [:], options: options))
    } catch {
      // Named as it was typed, not as a URL would spell it.
      var error = error
      error.url = text.isEmpty ? "''" : text
      return .failure(error)
    }
  }
}
#endif
