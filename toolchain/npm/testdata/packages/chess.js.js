// package: chess.js@1.4.0
// input: {"moves": ["e4", "e5", "Qh5", "Nc6", "Bc4", "Nf6", "Qxf7#"]}
// output: ["r1bqkb1r/pppp1Qpp/2n2n2/4p3/2B1P3/8/PPPP1PPP/RNB1K1NR b KQkq - 0 4",true,0]
import { extension } from "stile";
import { Chess } from "chess.js";

export default extension({
  tools: {
    call: {
      description: "Calls chess.js.",
      run: async (input) => {
        const game = new Chess();
        for (const m of input.moves) game.move(m);
        return [game.fen(), game.isCheckmate(), game.moves().length];
      },
    },
  },
});
