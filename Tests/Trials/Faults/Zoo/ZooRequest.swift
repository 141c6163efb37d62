#if Service
import CacheCore
import Foundation
import ImageCodecs
import ImageService

/// A list of operations, and the limits of their results.
struct ZooOperations: Sendable {
  var text: String
  var format: ImageFormat
  /// The largest side of a result.
  var side: Int

  /// The operations in rotation: each input gets some of them.
  static let all: [ZooOperations] =
    [
      ZooOperations(text: "fit=64x64,format=webp", format: .webp, side: 64),
      ZooOperations(text: "format=png,effort=1", format: .png, side: 65_535),
      ZooOperations(text: "fill=96x96,format=jpeg", format: .jpeg, side: 96),
      ZooOperations(text: "width=120,circle,format=png", format: .png, side: 120),
      ZooOperations(text: "fit=300x300:enlarge,format=jpeg,progressive", format: .jpeg, side: 300),
      ZooOperations(text: "fit=48x48,format=avif,effort=0", format: .avif, side: 48),
      ZooOperations(text: "crop=50x50:attention,format=png", format: .png, side: 50),
      ZooOperations(text: "rotate=90,gray,fit=80x80,border=2:ffffff,format=webp,lossless", format: .webp, side: 84),
      ZooOperations(text: "exact=150x90,blur=3,format=jpeg", format: .jpeg, side: 150),
    ].filter { ImageEncoder.isWritten($0.format) }
}

/// A request for an input with some operations.
struct ZooRequest: Sendable {
  var input: ZooInput
  var operations: ZooOperations
  var path: String

  var name: String { "\(input.name) (\(operations.text))" }

  /// Returns the requests for inputs.
  ///
  /// - Parameter count: The number of requests for each input.
  static func all(_ inputs: [ZooInput], count: Int, key: SigningKey) -> [ZooRequest] {
    // In turns, so that the same input is not requested several times in a row.
    (0..<count).flatMap { turn in
      inputs.enumerated().map { index, input in
        let operations = ZooOperations.all[(index + turn * 4) % ZooOperations.all.count]
        return ZooRequest(
          input: input, operations: operations, path: key.path(for: "zoo/\(input.name)", operations: operations.text))
      }
    }
  }
}

/// The reply to a request, and its defect.
struct ZooResult: Sendable {
  enum Outcome: Hashable, Sendable {
    case image
    case problem(String)
    /// There is no response, or one that is not an image of the right kind and no problem of the documentation.
    case invalid(String)
  }

  /// The status of each code that a problem for an input may have.
  private static let statuses = [
    "notAnImage": 422, "imageLimitExceeded": 422, "sourceTooLarge": 422, "unsupportedFormat": 422, "codecCrashed": 422,
    "codecOutOfMemory": 422, "codecTimedOut": 504, "timedOut": 504, "overloaded": 503,
  ]

  /// The allowance for the way to the service and back.
  static let allowance = Duration.milliseconds(200)

  private struct Problem: Decodable {
    var status: Int
    var code: String
  }

  var request: ZooRequest
  var outcome: Outcome
  var time: Duration
  /// Whether there is no response at all.
  var isLost: Bool

  init(_ request: ZooRequest, _ reply: ZooService.Reply, _ time: Duration) {
    (self.request, self.time) = (request, time)
    switch reply {
    case .none(let reason):
      (outcome, isLost) = (.invalid("no response: \(reason)"), true)
    case .response(let status, let type, let data):
      isLost = false
      outcome = status == 200 ? Self.image(type, data, request.operations) : Self.problem(status, type, data)
    }
  }

  private static func problem(_ status: Int, _ type: String, _ data: Data) -> Outcome {
    guard type == "application/problem+json", let problem = try? JSONDecoder().decode(Problem.self, from: data) else {
      return .invalid("status \(status) with \(data.count) bytes of '\(type)', which is not a problem")
    }
    guard problem.status == status, statuses[problem.code] == status else {
      return .invalid("status \(status) with the code \(problem.code)")
    }
    return .problem(problem.code)
  }

  /// Checks that an image has the requested format and size, and that all its pixels can be read.
  private static func image(_ type: String, _ data: Data, _ operations: ZooOperations) -> Outcome {
    guard type == operations.format.mediaType else { return .invalid("an image of the type '\(type)'") }
    do throws(CacheError) {
      let image = try ImageDecoder().decode(data)
      guard image.format == operations.format else { return .invalid("an image in \(image.format)") }
      guard max(image.size.width, image.size.height) <= operations.side, image.size.area <= ZooLimits.pixels else {
        return .invalid("an image of \(image.size)")
      }
      return .image
    } catch {
      return .invalid("an image that cannot be read: \(error.reason)")
    }
  }

  var hasTimedOut: Bool { [.problem("timedOut"), .problem("codecTimedOut")].contains(outcome) }

  var isLate: Bool { time > .seconds(ZooLimits.timeout) + Self.allowance }

  /// Whether the request waited for others, which says nothing about its input.
  var isFromLoad: Bool { hasTimedOut && !request.input.expectation.isSlow || outcome == .problem("overloaded") }

  /// The defect of the result, or `nil` if it is right for its input.
  var defect: String? {
    switch outcome {
    case .image: request.input.expectation.allowsImage ? nil : "an image, beyond a limit"
    case .problem(let code): request.input.expectation.codes.contains(code) ? nil : "the code \(code)"
    case .invalid(let reason): reason
    }
  }
}
#endif
