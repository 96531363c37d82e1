deepspeed --module openrlhf.cli.train_dpo \
   --pretrain google/gemma-2-9b-it \
   --bf16 \
   --max_len 2048 \
   --flash_attn \
   --gradient_checkpointing
