#if canImport(SwiftUI)
import CacheUI
import Foundation
import SwiftUI

/// An animated image with a button and a slider. It does not play until the button is pressed.
struct AnimatedImageView: View {
  let url: URL?

  var body: some View {
    CachedImage(url) { model in
      VStack {
        if let image = model.image { Image(image)?.resizable().scaledToFit() }
        if let error = model.phase.error { Text(error.description) }
        if model.player.frameCount > 1 { AnimationControls(player: model.player) }
      }
    }
    .autoplays(false)
    .frame(height: 160)
  }
}

/// The controls of an animation. Only this view is updated when the state of the player changes.
private struct AnimationControls: View {
  let player: AnimationPlayer

  var body: some View {
    HStack {
      Button(player.isPlaying ? "Pause" : "Play") { player.isPlaying ? player.pause() : player.play() }
      Slider(value: position, in: 0...Double(player.frameCount - 1), step: 1) { Text("Frame") }
      Text("\(player.frame + 1) of \(player.frameCount)")
    }
    if let error = player.error { Text(error.description) }
  }

  private var position: Binding<Double> {
    Binding {
      Double(player.frame)
    } set: {
      player.seek(to: Int($0))
    }
  }
}
#endif
